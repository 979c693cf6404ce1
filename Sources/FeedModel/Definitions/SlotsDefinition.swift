import FeedChange
import FeedJSON

/// The definition of a `slots` feed: contents by type, and the pattern that interleaves them (Protocol/README.md, "Slots").
///
/// Invariant: no type has two contents, and the positions of `fixed` ascend.
public struct SlotsDefinition: Equatable, Sendable {
  /// The feed of each type, in the order of the definition.
  public let contents: [Content]
  /// The types, in the order in which they alternate.
  public let pattern: [String]
  /// The types whose content is repeated when it runs out.
  public let repeatables: [String]
  /// The types of the first rows, before the pattern begins.
  public let header: [String]
  /// The type that replaces exhausted types, if there is one.
  public let defaultType: String?
  /// The types at fixed positions, ascending by position.
  public let fixed: [Fixed]
  /// The origin of the types of rows.
  public let types: Types

  public enum Types: String, Equatable, Sendable {
    /// The type is that of the content, as named in `contents`.
    case content
    /// The type is that of the row in its content.
    case element
  }

  /// The steps that following the change of one row may take: the layout is computed anew.
  var stepsPerRow: Int { 1000 + (pattern.count + header.count) * contents.count + 50 * fixed.count }

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
      throw reader.refuse("pattern", "is missing; give the types in the order in which they alternate")
    }
    self.pattern = pattern
    repeatables = try reader.strings("repeatables") ?? []
    header = try reader.strings("header") ?? []
    defaultType = try reader.string("default")
    fixed = try Self.fixed(reader)
    let rule = "must be \"content\" or \"element\""
    let types = try reader.string("types", atMost: FeedName.maxLength, else: rule)
    guard let types = Types(rawValue: types ?? "content") else { throw reader.refuse("types", rule) }
    self.types = types
    assert(zip(fixed, fixed.dropFirst()).allSatisfy { $0.position < $1.position }, "fixed positions do not ascend")
  }

  private static func contents(_ reader: DefinitionReader) throws(FeedError) -> [Content] {
    guard let object = reader.object.member("contents") else {
      throw reader.refuse("contents", "is missing; give an object from type to feed")
    }
    guard object.kind == .object else { throw reader.refuse("contents", "must be an object from type to feed") }
    // If a type occurs twice, the last one is used.
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
      // No position needs more digits. A longer key is refused without being decoded.
      let key = member.key.string(atMost: 64) ?? ""
      guard let position = Int(key), let type = member.value.string else {
        throw reader.refuse("fixed.\(key)", "must be a position, 0 or greater, with the name of a type")
      }
      fixed[position] = type
    }
    return fixed.sorted { $0.key < $1.key }.map { Fixed(position: $0.key, type: $0.value) }
  }
}
