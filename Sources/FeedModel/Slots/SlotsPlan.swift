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
/// Types are numbered in the order of first appearance in the definition. Plans are compared by identity: rows of
/// different plans are different rows.
final class SlotsPlan {
  let definition: SlotsDefinition
  let rule: SlotsRule
  /// The content of each type; nil for a type without content.
  let contents: [Feed?]
  /// Whether rows have their own types instead of those of `contents`.
  var showsOwnTypes: Bool { definition.types == .element }
  /// The names of the types as JSON strings, by number.
  let typeNames: [QuotedName]

  init(_ definition: SlotsDefinition, contents feeds: [String: Feed]) {
    var numbers: [String: Int] = [:]
    var names: [String] = []
    func number(_ type: String) -> Int {
      if let known = numbers[type] { return known }
      numbers[type] = names.count
      names.append(type)
      return names.count - 1
    }
    for content in definition.contents { _ = number(content.type) }
    let fixed = definition.fixed.map { ($0.position, number($0.type)) }
    rule = SlotsRule(
      pattern: definition.pattern.map(number), header: definition.header.map(number),
      repeatables: Set(definition.repeatables.map(number)), defaultType: definition.defaultType.map(number),
      fixed: Dictionary(fixed, uniquingKeysWith: { _, last in last }))
    self.definition = definition
    typeNames = names.map(QuotedName.init)
    contents = names.map { feeds[$0] }
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
