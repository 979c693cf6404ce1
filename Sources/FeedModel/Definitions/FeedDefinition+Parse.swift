import FeedJSON
import FeedQuery

extension FeedDefinition {
  /// Reads a definition as `define` takes it (PROTOCOL section 6). Unknown members are ignored.
  ///
  /// - Throws: `invalidParams` naming the member, `badQuery` with the offset into a filter or path, `limitExceeded`.
  public init(parsing object: JSONView, limits: Limits) throws(FeedError) {
    guard object.kind == .object else {
      throw .invalidParams(member: "params", reason: "must be an object that describes a feed")
    }
    let reader = DefinitionReader(object: object, place: "")
    let name = try reader.name("feed")
    guard let kind = try reader.string("kind") else {
      throw reader.refuse("kind", "is missing: say \"collection\"")
    }
    switch kind {
    case "collection":
      self.init(name: name, content: .collection(try CollectionDefinition(reading: reader, limits: limits)))
    default:
      throw reader.refuse("kind", "is \"\(kind)\", which this daemon does not have; it has \"collection\"")
    }
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
    switch try reader.string("order") {
    case nil, "ascending": descending = false
    case "descending": descending = true
    default: throw reader.refuse("order", "must be \"ascending\" or \"descending\"")
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

extension DefinitionReader {
  func positiveInteger(_ member: StaticString) throws(FeedError) -> Int? {
    guard let value = object.member(member) else { return nil }
    guard let number = value.int, number > 0 else { throw refuse("\(member)", "must be a whole number above 0") }
    return number
  }

  func positiveNumber(_ member: StaticString) throws(FeedError) -> Double? {
    guard let value = object.member(member) else { return nil }
    guard value.kind == .number, let number = Double(String(decoding: value.text, as: UTF8.self)), number > 0,
      number.isFinite
    else { throw refuse("\(member)", "must be a number above 0") }
    return number
  }
}
