import FeedChange
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
      throw reader.refuse("kind", "is missing: give one of \(FeedDefinition.kinds.joined(separator: ", "))")
    }
    let behaviours = try Behaviours(reading: reader)
    self.init(
      name: name, content: try Content(kind: kind, reading: reader, limits: limits), behaviours: behaviours)
  }
}

extension FeedDefinition.Content {
  fileprivate init(kind: String, reading reader: DefinitionReader, limits: Limits) throws(FeedError) {
    switch kind {
    case "collection": self = .collection(try CollectionDefinition(reading: reader, limits: limits))
    case "array": self = .list(ListDefinition(shape: .array, type: try reader.singularPath("type")))
    case "single": self = .list(ListDefinition(shape: .single, type: try reader.singularPath("type")))
    case "composed": self = .composed(children: try reader.feedNames("children") ?? [])
    case "segmented":
      let children = try reader.feedNames("children") ?? []
      let current = try reader.integer("current") ?? 0
      self = .segmented(children: children, current: min(max(current, -1), children.count - 1))
    case "slots": self = .slots(try SlotsDefinition(reading: reader))
    case "managed": self = .managed(try ManagedDefinition(reading: reader))
    default:
      throw reader.refuse(
        "kind", "is \"\(kind)\"; it must be one of \(FeedDefinition.kinds.joined(separator: ", "))")
    }
  }
}

extension Behaviours {
  fileprivate init(reading reader: DefinitionReader) throws(FeedError) {
    self.init()
    selectable = try reader.bool("selectable", default: selectable)
    multiple = try reader.bool("multiple", default: multiple)
    editable = try reader.bool("editable", default: editable)
    movable = try reader.bool("movable", default: movable)
  }
}
