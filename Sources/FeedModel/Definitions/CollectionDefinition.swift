import FeedChange
import FeedJSON
import FeedQuery

/// What a `collection` feed is made of: where identity stands, which bins there are, what is kept (PROTOCOL section 6).
public struct CollectionDefinition: Equatable, Sendable {
  /// One bin: the elements a filter accepts, in an order.
  public struct Bin: Equatable, Sendable {
    public let name: String
    /// Absent: every element is accepted.
    public let filter: Filter?
    /// Empty: order of arrival.
    public let sort: [SortTerm]

    public static func == (a: Bin, b: Bin) -> Bool {
      a.name == b.name && a.filter?.text == b.filter?.text && a.sort == b.sort
    }
  }

  /// One term of a sort: a singular query and a direction.
  public struct SortTerm: Equatable, Sendable {
    public let by: SingularPath
    public let descending: Bool

    public static func == (a: SortTerm, b: SortTerm) -> Bool {
      a.by.text == b.by.text && a.descending == b.descending
    }
  }

  /// Bounds on what is kept; elements unchanged for longest go first.
  public struct Retention: Equatable, Sendable {
    public let count: Int?
    public let seconds: Double?
  }

  /// The most terms of a bin's sort.
  public static let maxSortTerms = 64

  public let id: SingularPath
  public let type: SingularPath?
  /// Whether an element sits only in the first bin that accepts it.
  public let exclusive: Bool
  public let bins: [Bin]
  public let retain: Retention?

  public static func == (a: CollectionDefinition, b: CollectionDefinition) -> Bool {
    a.id.text == b.id.text && a.type?.text == b.type?.text && a.exclusive == b.exclusive && a.bins == b.bins
      && a.retain == b.retain
  }
}

extension CollectionDefinition {
  init(reading reader: DefinitionReader, limits: Limits) throws(FeedError) {
    id = try reader.singularPath("id") ?? .id
    type = try reader.singularPath("type")
    exclusive = try reader.bool("exclusive")
    bins = try Self.bins(reader, limits: limits)
    retain = try Retention(reading: reader)
  }

  private static func bins(_ reader: DefinitionReader, limits: Limits) throws(FeedError) -> [Bin] {
    guard let array = try reader.array("bins"), array.count > 0 else {
      return [Bin(name: "all", filter: nil, sort: [])]
    }
    guard array.count <= limits.maxBins else {
      throw .limitExceeded(
        limit: "maxBins", value: limits.maxBins, reason: "define fewer bins, or start feedd with a larger --max-bins")
    }
    var bins: [Bin] = []
    var names: Set<String> = []
    for (index, element) in array.elements.enumerated() {
      let bin = try Bin(reading: element, index: index)
      guard names.insert(bin.name).inserted else {
        throw .invalidParams(member: "bins[\(index)].name", reason: "\"\(bin.name)\" names an earlier bin too")
      }
      bins.append(bin)
    }
    return bins
  }
}

extension CollectionDefinition.Bin {
  fileprivate init(reading value: JSONView, index: Int) throws(FeedError) {
    guard value.kind == .object else {
      throw .invalidParams(member: "bins[\(index)]", reason: "must be an object with a name")
    }
    let reader = DefinitionReader(object: value, place: "bins[\(index)].")
    name = try reader.name("name")
    filter = try reader.filter("filter")
    sort = try Self.sort(reader)
  }

  private static func sort(_ reader: DefinitionReader) throws(FeedError) -> [CollectionDefinition.SortTerm] {
    guard let array = try reader.array("sort") else { return [] }
    guard array.count <= CollectionDefinition.maxSortTerms else {
      throw reader.refuse("sort", "must have at most \(CollectionDefinition.maxSortTerms) terms")
    }
    var terms: [CollectionDefinition.SortTerm] = []
    for (index, element) in array.elements.enumerated() {
      guard element.kind == .object else {
        throw reader.refuse("sort[\(index)]", "must be an object with \"by\"")
      }
      terms.append(try .init(reading: DefinitionReader(object: element, place: reader.place + "sort[\(index)].")))
    }
    return terms
  }
}

extension CollectionDefinition.SortTerm {
  fileprivate init(reading reader: DefinitionReader) throws(FeedError) {
    guard let by = try reader.singularPath("by") else {
      throw reader.refuse("by", "is missing: give the path to sort by, such as \"$.priority\"")
    }
    self.by = by
    let orders = "must be \"ascending\" or \"descending\""
    switch try reader.string("order", atMost: FeedName.maxLength, else: orders) {
    case nil, "ascending": descending = false
    case "descending": descending = true
    default: throw reader.refuse("order", orders)
    }
  }
}

extension CollectionDefinition.Retention {
  fileprivate init?(reading outer: DefinitionReader) throws(FeedError) {
    guard let value = outer.object.member("retain"), value.kind != .null else { return nil }
    guard value.kind == .object else {
      throw outer.refuse("retain", "must be an object with \"count\" or \"seconds\"")
    }
    let reader = DefinitionReader(object: value, place: "retain.")
    count = try reader.positiveInteger("count")
    seconds = try reader.positiveNumber("seconds")
    if count == nil && seconds == nil { return nil }
  }
}
