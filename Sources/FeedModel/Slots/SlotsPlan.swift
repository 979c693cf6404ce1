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

    public static func == (a: Content, b: Content) -> Bool { a.type.exact == b.type.exact && a.feed == b.feed }
  }

  public struct Fixed: Equatable, Sendable {
    public let position: Int
    public let type: String

    public static func == (a: Fixed, b: Fixed) -> Bool { a.position == b.position && a.type.exact == b.type.exact }
  }

  public static func == (a: SlotsDefinition, b: SlotsDefinition) -> Bool {
    func areEqual(_ a: [String], _ b: [String]) -> Bool { a.elementsEqual(b) { $0.exact == $1.exact } }
    return a.contents == b.contents && areEqual(a.pattern, b.pattern) && areEqual(a.repeatables, b.repeatables)
      && areEqual(a.header, b.header) && a.defaultType?.exact == b.defaultType?.exact && a.fixed == b.fixed
      && a.types == b.types
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
    var places: [ExactText: Int] = [:]
    for member in object.members {
      let type = member.key.string ?? ""
      guard let feed = member.value.string(atMost: FeedName.maxReferenceLength), FeedName.isValidReference(feed) else {
        throw reader.refuse("contents.\(type.prefix(64))", "must name a feed, or a bin as collection/bin")
      }
      if let former = places.updateValue(contents.count, forKey: type.exact) { contents[former] = nil }
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

/// The definition of a slots feed, with the feeds of its types.
///
/// A plan that follows others numbers its types like these: a number that has a content in two of them means the same type
/// with the same feed. So the layouts of two plans can be compared: the same item is the same row.
final class SlotsPlan {
  let definition: SlotsDefinition
  let rule: SlotsRule
  /// The content of each type; nil for a type without content, and for a number of an earlier plan that is not used.
  let contents: [Feed?]
  /// The numbers of the types of the definition's contents.
  fileprivate let contentNumbers: [Int]
  /// Whether rows have their own types instead of those of `contents`.
  var showsOwnTypes: Bool { definition.types == .element }
  /// The names of the types as JSON strings, by number.
  let typeNames: [QuotedName]

  /// - Parameter followed: the plans whose layouts the layout of this one may be compared with.
  init(_ definition: SlotsDefinition, contents feeds: [ExactText: Feed], following followed: [SlotsPlan] = []) {
    var numbers = SlotsNumbers(feeds, following: followed)
    contentNumbers = definition.contents.map { numbers.number(of: $0.type) }
    let fixed = definition.fixed.map { ($0.position, numbers.number(of: $0.type)) }
    rule = SlotsRule(
      pattern: definition.pattern.map { numbers.number(of: $0) },
      header: definition.header.map { numbers.number(of: $0) },
      repeatables: Set(definition.repeatables.map { numbers.number(of: $0) }),
      defaultType: definition.defaultType.map { numbers.number(of: $0) },
      fixed: Dictionary(fixed, uniquingKeysWith: { _, last in last }))
    self.definition = definition
    typeNames = numbers.names.map(QuotedName.init)
    contents = numbers.contents
  }

  /// Whether a number has the same content here as in another plan.
  func hasContent(of other: SlotsPlan, at number: Int) -> Bool {
    number < contents.count && contents[number] === other.contents[number]
  }
}

/// The numbers of the types of a plan that follows others.
private struct SlotsNumbers {
  /// The name and the content of each number so far.
  private(set) var names: [String]
  private(set) var contents: [Feed?]
  private let feeds: [ExactText: Feed]
  private var numbers: [ExactText: Int] = [:]
  /// The numbers with a content in the plans that are followed, by type and feed.
  private var known: [Key: Int] = [:]
  /// The numbers without a content in these plans, from the greatest to the least.
  private var free: [Int]

  private struct Key: Hashable {
    let type: ExactText
    let feed: ObjectIdentifier
  }

  init(_ feeds: [ExactText: Feed], following plans: [SlotsPlan]) {
    self.feeds = feeds
    let count = plans.reduce(0) { max($0, ($1.contentNumbers.max() ?? -1) + 1) }
    names = [String](repeating: "", count: count)
    contents = [Feed?](repeating: nil, count: count)
    free = (0..<count).reversed().filter { number in
      plans.allSatisfy { number >= $0.contents.count || $0.contents[number] == nil }
    }
    for plan in plans {
      for (content, number) in zip(plan.definition.contents, plan.contentNumbers) {
        guard let feed = plan.contents[number] else { continue }
        known[Key(type: content.type.exact, feed: ObjectIdentifier(feed))] = number
      }
    }
  }

  /// The number of a type, which it gets when it is asked for first.
  mutating func number(of type: String) -> Int {
    let exact = type.exact
    if let number = numbers[exact] { return number }
    let feed = feeds[exact]
    let number = feed.flatMap { known[Key(type: exact, feed: ObjectIdentifier($0))] } ?? makeNumber()
    (names[number], contents[number]) = (type, feed)
    numbers[exact] = number
    return number
  }

  private mutating func makeNumber() -> Int {
    if let number = free.popLast() { return number }
    names.append("")
    contents.append(nil)
    return names.count - 1
  }
}

/// A name as a JSON string, at an address that is stable while this object exists.
final class QuotedName {
  private var buffer = ByteBuffer()

  init(_ name: String) { buffer.appendJSONString(name) }

  var bytes: UnsafeRawBufferPointer { buffer.bytes }
}
