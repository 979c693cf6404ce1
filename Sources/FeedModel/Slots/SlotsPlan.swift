import FeedJSON

/// The rule by which the rows of several contents are interleaved in one list (Protocol/README.md, "Slots").
///
/// Types are indices, from 0, into the list of counts that a `SlotsLayout` is created with.
///
/// - The header is processed once, then the pattern repeatedly. Processing a list once is a pass. A pass processes each
///   type in turn. If the type has rows left, its next row is emitted, unless an earlier type of the same pass was
///   found empty and this type is not a live repeatable. If it has no rows left and the default type has, the next row
///   of that is emitted. Otherwise, a live repeatable stops being live, and any other type marks the pass as having
///   found an empty type. When no repeatable is live then, processing ends.
/// - Repeatables are live from the start. Types that are not in the pattern do not count, and with a default type none
///   does.
/// - Unless processing ended in the header, fixed rows are inserted last: for each position in ascending order, the
///   next row of its type is inserted there, if there is one and the list is long enough by then. Types in the pattern
///   are ignored.
/// - With an empty pattern there are no rows.
public struct SlotsRule: Equatable, Sendable {
  /// The types of the first pass.
  public var header: [Int]
  /// The types of every later pass.
  public var pattern: [Int] { didSet { sortInsertions() } }
  /// The types that continue when others are exhausted.
  public var repeatables: Set<Int>
  /// The type that replaces exhausted types.
  public var defaultType: Int?
  /// The types of fixed rows by their position in the finished list, from 0. Negative positions are ignored.
  public var fixed: [Int: Int] { didSet { sortInsertions() } }
  /// The entries of `fixed` that may be inserted: not at negative positions, no types of the pattern.
  private(set) var insertions = SlotsInsertions([])

  /// Creates a rule from its parts.
  public init(
    pattern: [Int], header: [Int] = [], repeatables: Set<Int> = [], defaultType: Int? = nil, fixed: [Int: Int] = [:]
  ) {
    self.pattern = pattern
    self.header = header
    self.repeatables = repeatables
    self.defaultType = defaultType
    self.fixed = fixed
    sortInsertions()
  }

  private mutating func sortInsertions() {
    let shown = Set(pattern)
    insertions = SlotsInsertions(
      fixed.filter { $0.key >= 0 && !shown.contains($0.value) }.map { (position: $0.key, type: $0.value) }
        .sorted { $0.position < $1.position })
  }

  public static func == (a: SlotsRule, b: SlotsRule) -> Bool {
    a.header == b.header && a.pattern == b.pattern && a.repeatables == b.repeatables && a.defaultType == b.defaultType
      && a.fixed == b.fixed
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
  init(_ definition: SlotsDefinition, contents feeds: [String: Feed], following followed: [SlotsPlan] = []) {
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
  private let feeds: [String: Feed]
  private var numbers: [String: Int] = [:]
  /// The numbers with a content in the plans that are followed, by type and feed.
  private var known: [Key: Int] = [:]
  /// The numbers without a content in these plans, from the greatest to the least.
  private var free: [Int]

  private struct Key: Hashable {
    let type: String
    let feed: ObjectIdentifier
  }

  init(_ feeds: [String: Feed], following plans: [SlotsPlan]) {
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
        known[Key(type: content.type, feed: ObjectIdentifier(feed))] = number
      }
    }
  }

  /// The number of a type, which it gets when it is asked for first.
  mutating func number(of type: String) -> Int {
    if let number = numbers[type] { return number }
    let feed = feeds[type]
    let number = feed.flatMap { known[Key(type: type, feed: ObjectIdentifier($0))] } ?? makeNumber()
    (names[number], contents[number]) = (type, feed)
    numbers[type] = number
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

  init(_ name: String) {
    buffer.appendJSONString(name)
  }

  var bytes: UnsafeRawBufferPointer { buffer.bytes }
}
