import FeedChange
import FeedJSON
import FeedQuery

/// The definition of a `collection` feed: identity, bins and retention (Protocol/README.md, "Collections").
///
/// Invariant: there is at least one bin, no two bins have the same name, and each has at most `maxSortTerms` sort terms.
public struct CollectionDefinition: Equatable, Sendable {
  /// A bin: the elements that its filter accepts, in the order of its sort.
  public struct Bin: Equatable, Sendable {
    public let name: String
    /// The condition on elements. If nil, the bin accepts every element.
    public let filter: Filter?
    /// The sort terms, the most significant first. If empty, the order is that of arrival.
    public let sort: [SortTerm]
  }

  /// An order by the values at a path.
  public struct SortTerm: Equatable, Sendable {
    public let by: SingularPath
    public let descending: Bool
  }

  public static let maxSortTerms = 64

  /// The path of an element's identity.
  public let id: SingularPath
  /// The path of an element's type, if elements have types.
  public let type: SingularPath?
  /// Whether an element is only in the first bin that accepts it.
  public let exclusive: Bool
  /// The bins, in the order of their sections; exactly one if there are sections by value.
  public let bins: [Bin]
  /// The values with a section each, in the order of the sections, if the collection has sections by value instead of bins
  /// (Protocol/README.md, "Sections by value").
  public let section: SortTerm?
  /// The limits on kept elements; nil keeps all elements.
  public let retain: Retention?

  /// The bins that are feeds of their own; none if there are sections by value.
  var feeds: [Bin] { section == nil ? bins : [] }
}

extension CollectionDefinition {
  /// Reads the members of the definition.
  /// - Throws: `invalidParams`, `badQuery`, or `limitExceeded` for more bins than `limits` allows.
  init(reading reader: DefinitionReader, limits: Limits) throws(FeedError) {
    id = try reader.singularPath("id") ?? .id
    type = try reader.singularPath("type")
    exclusive = try reader.bool("exclusive")
    bins = try Self.bins(reader, limits: limits)
    section = try SortTerm(section: reader, bins: bins.count)
    retain = try Retention(reading: reader)
    assert(!bins.isEmpty && bins.allSatisfy { $0.sort.count <= Self.maxSortTerms }, "the definition is malformed")
  }

  private static func bins(_ reader: DefinitionReader, limits: Limits) throws(FeedError) -> [Bin] {
    guard let array = try reader.array("bins"), array.count > 0 else {
      return [Bin(name: "all", filter: nil, sort: [])]
    }
    guard array.count <= limits.maxBins else { throw limits.exceeded(\.maxBins, "define fewer bins") }
    var bins: [Bin] = []
    var names: Set<String> = []
    var size = 0
    for (index, element) in array.elements.enumerated() {
      let bin = try Bin(reading: element, index: index, besides: size, limits)
      size += bin.filter?.size ?? 0
      guard names.insert(bin.name).inserted else {
        throw .invalidParams(member: "bins[\(index)].name", reason: "is \"\(bin.name)\", the name of another bin")
      }
      bins.append(bin)
    }
    return bins
  }
}

extension CollectionDefinition.SortTerm {
  private static let orders = "must be \"ascending\" or \"descending\""

  /// Reads the path and the order of sections by value; nil if there is no path.
  fileprivate init?(section reader: DefinitionReader, bins: Int) throws(FeedError) {
    let order = try reader.string("sectionOrder", atMost: FeedName.maxLength, else: Self.orders)
    guard let by = try reader.singularPath("section") else {
      if order != nil { throw reader.refuse("sectionOrder", "needs \"section\"; give the path of the value") }
      return nil
    }
    guard bins <= 1 else {
      throw reader.refuse("section", "needs a collection with at most one bin, and there are \(bins)")
    }
    (self.by, descending) = (by, try Self.isDescending(order, "sectionOrder", reader))
  }

  private static func isDescending(
    _ order: String?, _ member: String, _ reader: DefinitionReader
  ) throws(FeedError) -> Bool {
    switch order {
    case nil, "ascending": false
    case "descending": true
    default: throw reader.refuse(member, orders)
    }
  }

  /// Reads the terms of the member `sort`; none if it is absent.
  static func list(reading reader: DefinitionReader) throws(FeedError) -> [CollectionDefinition.SortTerm] {
    guard let array = try reader.array("sort") else { return [] }
    guard array.count <= CollectionDefinition.maxSortTerms else {
      throw reader.refuse("sort", "must have at most \(CollectionDefinition.maxSortTerms) terms")
    }
    var terms: [CollectionDefinition.SortTerm] = []
    for (index, element) in array.elements.enumerated() {
      guard element.kind == .object else { throw reader.refuse("sort[\(index)]", "must be an object with \"by\"") }
      terms.append(try .init(reading: DefinitionReader(object: element, place: reader.place + "sort[\(index)].")))
    }
    return terms
  }

  fileprivate init(reading reader: DefinitionReader) throws(FeedError) {
    guard let by = try reader.singularPath("by") else {
      throw reader.refuse("by", "is missing; give the path of the sort key, such as \"$.priority\"")
    }
    let order = try reader.string("order", atMost: FeedName.maxLength, else: Self.orders)
    (self.by, descending) = (by, try Self.isDescending(order, "order", reader))
  }
}

extension CollectionDefinition.Bin {
  fileprivate init(reading value: JSONView, index: Int, besides size: Int, _ limits: Limits) throws(FeedError) {
    guard value.kind == .object else {
      throw .invalidParams(member: "bins[\(index)]", reason: "must be an object with a name")
    }
    let reader = DefinitionReader(object: value, place: "bins[\(index)].")
    name = try reader.name("name")
    filter = try reader.filter("filter", besides: size, limits)
    sort = try CollectionDefinition.SortTerm.list(reading: reader)
  }
}

/// The sizes of elements over which the filters of collections may take many steps.
///
/// Invariant: `smallest` is the least ``RowStore/slowSize`` of all feeds of the table.
struct SlowFilters {
  private(set) var smallest = Int.max

  /// Follows that a feed was added to the table, removed or redefined. O(1), or O(feeds) if it had the least size.
  mutating func follow(_ feed: Feed, formerly former: Int, in table: FeedTable) {
    let size = table.byName[feed.name] === feed ? feed.kind.rows?.slowSize ?? .max : .max
    if size <= smallest { smallest = size } else if former == smallest { refresh(from: table) }
  }

  private mutating func refresh(from table: FeedTable) {
    smallest = table.all.reduce(.max) { min($0, $1.kind.rows?.slowSize ?? .max) }
  }

  /// O(feeds).
  func checkInvariants(_ table: FeedTable) {
    var fresh = SlowFilters()
    fresh.refresh(from: table)
    precondition(smallest == fresh.smallest, "the size of elements for slow filters is out of date")
  }
}

extension CollectionDefinition {
  /// The sizes of elements that are told apart.
  private static let sizes = (5..<15).map { 1 << $0 }
  /// The steps that take about two milliseconds.
  private static let manySteps = 50_000

  /// The bytes of the shortest elements over which the filters may take long, rounded down to a power of two; `Int.max` if
  /// there are none shorter than 16 KiB. O(bytes of the filters).
  var slowSize: Int {
    let filters = bins.compactMap(\.filter).filter { !$0.isShort }
    if filters.isEmpty { return .max }
    return Self.sizes.first { size in
      filters.reduce(0) { min($0 + $1.mostSteps(over: 2 * size), 1 << 50) } >= Self.manySteps
    } ?? .max
  }
}

extension Catalog {
  /// Whether an update of `bytes` bytes may take long in some collection. O(1).
  public func mayHaveSlowFilters(for bytes: Int) -> Bool { bytes >= slowFilters.smallest }
}

extension Feed {
  /// Whether the filters of the feed may take long over an element of `bytes` bytes. O(1).
  public func hasSlowFilters(for bytes: Int) -> Bool { bytes >= kind.rows?.slowSize ?? .max }
}
