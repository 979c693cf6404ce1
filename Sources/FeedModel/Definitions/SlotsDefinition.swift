import FeedChange
import FeedJSON

/// What a `slots` feed is made of: contents by type and the pattern that interleaves them (seeds 000 and 001).
public struct SlotsDefinition: Equatable, Sendable {
  /// The feed of each type, by the type's name; in the order of the definition.
  public let contents: [Content]
  public let pattern: [String]
  public let repeatables: [String]
  public let header: [String]
  public let defaultType: String?
  /// Types by the position they are fixed at, ascending.
  public let fixed: [Fixed]

  public struct Content: Equatable, Sendable {
    public let type: String
    public let feed: String
  }

  public struct Fixed: Equatable, Sendable {
    public let position: Int
    public let type: String
  }
}

extension SlotsDefinition {
  init(reading reader: DefinitionReader) throws(FeedError) {
    contents = try Self.contents(reader)
    guard let pattern = try reader.strings("pattern") else {
      throw reader.refuse("pattern", "is missing: give the types in the order in which they alternate")
    }
    self.pattern = pattern
    repeatables = try reader.strings("repeatables") ?? []
    header = try reader.strings("header") ?? []
    defaultType = try reader.string("default")
    fixed = try Self.fixed(reader)
  }

  private static func contents(_ reader: DefinitionReader) throws(FeedError) -> [Content] {
    guard let object = reader.object.member("contents") else {
      throw reader.refuse("contents", "is missing: give an object from type to feed")
    }
    guard object.kind == .object else { throw reader.refuse("contents", "must be an object from type to feed") }
    // Of a type that stands twice the last counts.
    var contents: [Content?] = []
    var places: [String: Int] = [:]
    for member in object.members {
      let type = member.key.string ?? ""
      guard let feed = member.value.string(atMost: FeedName.maxReferenceLength), FeedName.isValidReference(feed) else {
        throw reader.refuse("contents.\(type.prefix(64))", "must name a feed, or a bin as collection/bin")
      }
      if let former = places.updateValue(contents.count, forKey: type) { contents[former] = nil }
      contents.append(Content(type: type, feed: feed))
    }
    return contents.compactMap { $0 }
  }

  private static func fixed(_ reader: DefinitionReader) throws(FeedError) -> [Fixed] {
    guard let object = reader.object.member("fixed") else { return [] }
    guard object.kind == .object else { throw reader.refuse("fixed", "must be an object from position to type") }
    var fixed: [Int: String] = [:]
    for member in object.members {
      // No position has more digits; a longer name is refused without being decoded.
      let key = member.key.string(atMost: 64) ?? ""
      guard let position = Int(key), let type = member.value.string else {
        throw reader.refuse("fixed.\(key)", "must be a position from 0 on, with the name of a type")
      }
      fixed[position] = type
    }
    return fixed.sorted { $0.key < $1.key }.map { Fixed(position: $0.key, type: $0.value) }
  }
}
