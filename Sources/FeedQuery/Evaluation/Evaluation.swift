import FeedJSON

/// One evaluation of a program: the root and the remaining steps.
struct Evaluation {
  let tables: ProgramTables
  let root: JSONView
  /// The remaining steps, about one for each node visited; without those that ``pace`` holds. If they are below zero and
  /// `isExhausted`, the evaluation has stopped and its results are invalid.
  var steps: Int
  /// Lets the evaluation stop now and then. Not retained.
  let pace: Unmanaged<EvaluationPace>?
  /// Whether the steps depend only on the program and the value. A regular expression is then charged for its maximum work
  /// instead of its actual work, which depends on the states that it has cached.
  let isRepeatable: Bool
  /// The result of the last long walk to an element of an array.
  private var found: FoundElement?

  private struct FoundElement {
    let selector: UnsafePointer<Selector>
    /// The array, by the offset of its text.
    let array: Int
    let element: JSONView
  }

  /// Walks to indexes below this are not cached.
  private static let shortWalk = 64

  @inline(__always)
  init(_ program: Program, root: JSONView, steps: Int, isRepeatable: Bool = false, pace: EvaluationPace? = nil) {
    self.isRepeatable = isRepeatable
    tables = program.tables
    self.root = root
    self.pace = pace.map(Unmanaged.passUnretained)
    self.steps = pace?.begin(steps: steps) ?? steps
  }

  @inline(__always)
  var isExhausted: Bool { mutating get { steps < 0 && !refill() } }
  var allSteps: Int { steps &+ reserve }
  /// The steps that ``pace`` holds.
  var reserve: Int { pace?._withUnsafeGuaranteedRef { $0.reserve } ?? 0 }

  /// Stops, and takes more steps if there are some left. Returns whether there are.
  @inline(never)
  private mutating func refill() -> Bool {
    guard let pace else { return false }
    steps = pace._withUnsafeGuaranteedRef { $0.refill(steps) }
    return steps >= 0
  }

  @inline(__always)
  mutating func charge(bytes: Int) { steps &-= bytes &>> 4 }

  /// The work of finding the member with a name of so many bytes: all names that are as long are compared with it.
  @inline(__always)
  static func steps(for name: Int, in node: JSONView) -> Int { node.count &>> 2 &+ node.count &* (name &>> 6) }

  /// Charges the work of reading a member's name once, to compare or to hash it. Names are short mostly and cost nothing; escapes
  /// are decoded byte by byte.
  @inline(__always)
  mutating func charge(name key: JSONView) { steps &-= key.text.count &>> (key.hasEscapes ? 5 : 8) }

  /// Returns the node of a singular query; nil if there is none.
  @inline(__always)
  mutating func resolve(_ index: Int32, current: JSONView) -> JSONView? {
    let query = tables.queries + Int(index)
    var node = query.pointee.isAbsolute ? root : current
    var selector = tables.selectors + Int(query.pointee.firstSelector)
    for _ in 0..<query.pointee.segmentCount {
      guard let child = step(selector, from: node) else { return nil }
      node = child
      selector += 1
    }
    return node
  }

  /// Returns the child that a name or an index selects; nil if there is none.
  @inline(__always)
  mutating func step(_ selector: UnsafePointer<Selector>, from node: JSONView) -> JSONView? {
    switch selector.pointee {
    case .name(let name):
      steps &-= Self.steps(for: Int(name.count), in: node)
      return node.member(utf8: tables.slice(name))
    case .index(let index):
      let position = index >= 0 ? index : node.count &+ index
      return node.hasOnlyScalars ? node.element(at: position) : walk(selector, node, to: position)
    case .wildcard, .slice, .filter: return nil
    }
  }

  /// Walks to an element of an array that has nested elements, and charges the walk.
  ///
  /// The element is cached for its selector, so that a filter that compares every element with `$[59999]` walks once.
  @inline(never)
  private mutating func walk(_ selector: UnsafePointer<Selector>, _ array: JSONView, to position: Int) -> JSONView? {
    guard position >= 0, position < array.count, array.kind == .array else { return nil }
    if let found, found.selector == selector, found.array == array.byteOffset { return found.element }
    steps &-= position &>> 2
    guard !isExhausted, let element = array.element(at: position) else { return nil }
    if position >= Self.shortWalk {
      found = FoundElement(selector: selector, array: array.byteOffset, element: element)
    }
    return element
  }
}

/// Lets a long evaluation stop now and then, so that its thread can do other work.
///
///     let pace = EvaluationPace(every: 1000) { serveOthers(); return !isCancelled }
///     path.evaluate(root, steps: &steps, pace: pace) { node in … }
///
/// An evaluation holds only a part of its steps; the rest is here. When the part is used up, the evaluation stops and takes the
/// next part. Without a pace this costs nothing.
public final class EvaluationPace {
  /// The steps between two stops.
  private let interval: Int
  private let stop: () -> Bool
  /// The steps that the evaluation has not taken yet.
  private(set) var reserve = 0
  /// The work outside of steps since the last stop.
  private var spent = 0
  /// Whether the evaluation ends as if its steps had run out.
  private(set) var isCancelled = false

  /// - Parameters:
  ///   - interval: the steps between two stops.
  ///   - stop: called at each stop. Returns whether the evaluation goes on; otherwise its results are invalid.
  public init(every interval: Int, stop: @escaping () -> Bool) { (self.interval, self.stop) = (interval, stop) }

  /// Takes over the steps of an evaluation, and returns its first part.
  func begin(steps: Int) -> Int {
    let part = min(steps, interval)
    reserve = steps &- part
    return part
  }

  /// Stops, and returns the next part of the steps for an evaluation that has `steps` left, fewer than none. The result is
  /// below zero if there are no steps left.
  func refill(_ steps: Int) -> Int {
    rest()
    let part = isCancelled ? 0 : min(reserve, interval &- steps)
    reserve = isCancelled ? 0 : reserve &- part
    return steps &+ part
  }

  /// Counts work that is not charged step by step, and stops if enough was done.
  func spend(_ work: Int = 1) {
    spent &+= work
    if spent >= interval { rest() }
  }

  private func rest() {
    spent = 0
    if !isCancelled && !stop() { isCancelled = true }
  }
}

/// Finds the members of an object that are shadowed by a later member of the same name. Queries use the last one.
///
/// Objects of up to `few` members are searched pair by pair without allocation, larger ones once with a hash table.
enum ShadowedMembers {
  static let few = 16

  static func isShadowed(_ key: JSONView, by later: JSONView.Members, _ evaluation: inout Evaluation) -> Bool {
    var later = later
    while let other = later.next() { if sameName(key, other.key, &evaluation) { return true } }
    return false
  }

  /// The number of shadowed members of `object`.
  static func count(in object: JSONView, _ evaluation: inout Evaluation) -> Int {
    evaluation.steps &-= object.count
    if object.count > few { return find(in: object, &evaluation).count }
    var count = 0
    var members = object.members
    while let member = members.next(), !evaluation.isExhausted {
      if isShadowed(member.key, by: members, &evaluation) { count &+= 1 }
    }
    return count
  }

  /// The offsets in the text (`byteOffset`) of the values of shadowed members. O(members).
  static func find(in object: JSONView, _ evaluation: inout Evaluation) -> Set<Int> {
    var last: [MemberName: Int] = [:]
    last.reserveCapacity(object.count)
    var shadowed: Set<Int> = []
    for member in object.members {
      if let earlier = last.updateValue(member.value.byteOffset, forKey: MemberName(key: member.key)) {
        shadowed.insert(earlier)
      }
      evaluation.charge(name: member.key)
      evaluation.pace?._withUnsafeGuaranteedRef { $0.spend(4) }
    }
    return shadowed
  }

  @inline(__always)
  private static func sameName(_ first: JSONView, _ second: JSONView, _ evaluation: inout Evaluation) -> Bool {
    if !first.hasEscapes, !second.hasEscapes, first.text.count != second.text.count { return false }
    evaluation.charge(name: first.hasEscapes ? first : second)
    return first.compareString(second) == 0
  }
}

/// A member's name, hashed and compared by its decoded value.
private struct MemberName: Hashable {
  let key: JSONView

  static func == (left: MemberName, right: MemberName) -> Bool { left.key.compareString(right.key) == 0 }
  func hash(into hasher: inout Hasher) { _ = key.withDecodedUTF8 { hasher.combine(bytes: $0) } }
}
