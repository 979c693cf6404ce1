import FeedChange
import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// An engine with a tree of feeds of all kinds, the reference, and a watcher of every feed.
final class TreeWorld {
  let harness: EngineHarness
  let pusher: ConnectionID
  let watcher: ConnectionID
  /// Watches the counts of some feeds.
  let counter: ConnectionID
  var generator: TreeGenerator
  var reference = TreeReference()
  /// The rows of the reference after the last operation.
  var views: [String: TreeView] = [:]
  /// The watcher's mirrors of every feed and bin.
  var mirrors: [String: Mirror] = [:]
  /// What the watcher of counts was told.
  var counted: [String: Counts] = [:]
  /// The revisions with which feeds stopped showing rows of managed feeds.
  var settled: [String: Set<Int>] = [:]
  /// The selected rows of every feed, by token, and the selection that the watcher received.
  var selections: [String: [UInt64]] = [:]
  var told: [String: [[Int]]] = [:]
  /// The deltas of the turn, by feed.
  var deltas: [String: Value] = [:]
  /// The checked deltas of the last commit.
  var changes: [String: TreeChange] = [:]
  /// The feeds that show something else, or had a delta, since they were compared.
  var touched: Set<String> = []
  var statistics: [String: Int] = [:]
  /// The last requests, for failure messages.
  private(set) var trace: [String] = []

  /// Earlier mirrors of every feed, oldest first, if `keepsPast`.
  var past: [String: [Mirror]] = [:]
  var keepsPast = false

  /// - Parameter expires: whether time goes by and elements expire.
  init(seed: UInt64, limits: Limits = Limits(), expires: Bool = false) {
    generator = TreeGenerator(random: SeededRandom(seed: seed))
    harness = EngineHarness(limits: limits, seed: seed)
    pusher = harness.connect()
    watcher = harness.connect()
    counter = harness.connect()
    if expires { generator.now = moment }
    reference.moment = moment
  }

  /// The time of the daemon, in milliseconds since 1970.
  private var moment: Int { Int(harness.now.nanoseconds / 1_000_000) }

  func fail(_ reason: String) -> TreeChange.Violation {
    TreeChange.Violation(description: reason + "\n  after:\n  " + trace.suffix(6).joined(separator: "\n  "))
  }

  func ask(_ method: String, _ params: String) throws -> Value {
    let texts = harness.ask(pusher, method, params)
    guard texts.count == 1, let answer = Value(texts[0]) else {
      throw fail("\(texts.count) answers to \(method) \(params)")
    }
    return answer
  }

  /// Sends a mutation.
  func mutate(_ method: String, _ params: String) throws -> Value {
    note("\(method) \(params)")
    return try ask(method, params)
  }

  /// Records a step for failure messages.
  func note(_ step: String) {
    trace.append(step)
    if trace.count > 40 { trace.removeFirst(20) }
  }

  /// Executes a random operation or transaction and checks the result.
  func step() throws {
    if generator.chance(6) { return try select() }
    if generator.now != nil && generator.chance(8) { return try passTime() }
    if generator.chance(5) { return try manage() }
    if generator.chance(15) { try transaction() } else { try single() }
    if generator.chance(10) { try read() }
  }

  /// Lets time go by, so that elements expire.
  ///
  /// A microsecond more than whole milliseconds: the daemon's commits are nanoseconds apart, so an element must not be as old
  /// as `retain.seconds` to the millisecond.
  private func passTime() throws {
    let milliseconds = generator.pick([1, 20, 400, 1000, 3000])
    note("\(milliseconds) ms")
    let commits = commits
    harness.advance(seconds: (Double(milliseconds) + 0.001) / 1000)
    generator.now = moment
    reference.moment = moment
    try settle(nil)
    statistics["evictions", default: 0] += self.commits - commits
  }

  private func single() throws {
    let operation = generator.operation(on: reference, views)
    let condition = condition()
    let answer = try mutate(operation.method, "\(operation.params.dropLast())\(condition.member)}")
    if let code = condition.refusal { return try expectRefusal(answer, code, at: nil) }
    var next = reference
    (next.isStructural, next.rebinned) = (false, [])
    let change = answer["result"].flatMap { $0["deleted"] == nil ? nil : Change($0) }
    do throws(TreeReference.Refusal) {
      try next.apply(operation)
    } catch {
      return try expectRefusal(answer, error.code, at: nil)
    }
    guard answer["error"] == nil else { throw fail("refused: \(answer)") }
    if let change { try check(change, operation, from: reference, to: next) }
    try settle(next, answer, [operation])
    statistics[operation.method, default: 0] += 1
  }

  /// The member `if` of a request, mostly none, and the code with which it is refused.
  private func condition() -> (member: String, refusal: Int?) {
    guard generator.chance(6), !views.isEmpty else { return ("", nil) }
    let name = generator.chance(80) ? generator.pick(views.keys.sorted()) : generator.pick(TreeGenerator.names)
    let present = mirrors[name]?.revision
    let expected = generator.chance(60) ? present : generator.chance(50) ? nil : max(0, commits - generator.below(3))
    statistics["condition", default: 0] += 1
    let revision = expected.map { "\($0)" } ?? "null"
    let code = reference.showsManagedRows(name) ? -32002 : expected == present ? nil : -32009
    return (",\"if\":{\"feed\":\"\(name)\",\"revision\":\(revision)}", code)
  }

  private func transaction() throws {
    var next = reference
    (next.isStructural, next.rebinned) = (false, [])
    var (operations, steps) = ([TreeOperation](), [TreeReference]())
    var refusal: (index: Int, code: Int)?
    for index in 0..<(2 + generator.below(5)) {
      let operation = generator.operation(on: next, views)
      operations.append(operation)
      do throws(TreeReference.Refusal) {
        try next.apply(operation)
      } catch {
        refusal = (index, error.code)
        break
      }
      steps.append(next)
    }
    let answer = try mutate("transaction", "{\"ops\":[\(operations.map(\.json).joined(separator: ","))]}")
    if let refusal { return try expectRefusal(answer, refusal.code, at: refusal.index) }
    guard let results = answer["result"]?["results"]?.items, results.count == operations.count else {
      throw fail("refused: \(answer)")
    }
    next = reference
    (next.isStructural, next.rebinned) = (false, [])
    for (operation, result) in zip(operations, results) {
      let before = next
      try next.apply(operation)
      try check(Change(result), operation, from: before, to: next, inTransaction: true)
    }
    try settle(next, answer, operations)
    statistics["transaction", default: 0] += 1
  }

  /// Checks that a refused request changes and publishes nothing.
  private func expectRefusal(_ answer: Value, _ code: Int, at index: Int?) throws {
    guard answer.errorCode == code else { throw fail("expected error \(code) at \(index ?? 0): \(answer)") }
    if let index, answer.errorData?["op"]?.int != index { throw fail("expected the error at op \(index): \(answer)") }
    let frames = harness.take(watcher)
    if !frames.isEmpty { throw fail("a refused request was published: \(frames)") }
    try compareEngine(isWhole: true)
    statistics["refused \(code)", default: 0] += 1
  }

  /// Checks the change in an answer, in the coordinates of the state before the operation.
  private func check(
    _ change: Change, _ operation: TreeOperation, from before: TreeReference, to after: TreeReference,
    inTransaction: Bool = false
  ) throws {
    let name = operation.feed
    guard before.exists(name) else { return }
    let old = before.view(name)
    var after = after
    // The result of an operation in a transaction does not list the rows of `$feeds`; the delta does.
    if inTransaction { after.list = before.listRows }
    if case .define = operation, before.feeds[name]?.children != nil {
      try checkChildren(of: name, before, after, change, isCommit: false)
    }
    let new = after.exists(name) ? after.view(name) : TreeView(instance: old.instance, sections: [])
    do {
      let checked = try TreeChange(change, from: old, to: new)
      if !checked.needless.isEmpty { throw fail("needless updates: \(checked)") }
      if operation.strictness > 0 { try checked.checkFewest() }
      // After others were evicted, rows that `set` changed may be in a common prefix or suffix.
      let isEvicting = before.feeds[name]?.list?.retain != nil
      if operation.strictness == 2 && !isEvicting { try checkSet(checked) }
    } catch let error as TreeChange.Violation {
      throw fail("the answer to \(operation.method): \(error)")
    }
  }

  /// Checks that `set` does not list the common prefix and suffix.
  private func checkSet(_ checked: TreeChange) throws {
    guard let old = checked.before.sections.first?.rows, let new = checked.after.sections.first?.rows else { return }
    let start = zip(old, new).prefix { $0.shows($1) }.count
    let end = min(
      zip(old.reversed(), new.reversed()).prefix { $0.shows($1) }.count, min(old.count, new.count) - start)
    let listed = checked.change.added + checked.change.updated
    if listed.contains(where: { Int($0.row) < start || Int($0.row) >= new.count - end }) {
      throw fail("set lists the common prefix or suffix: \(checked.change)")
    }
  }
}

extension TreeOperation {
  /// How strictly unlisted rows are checked: 1 if as many as possible must stay, 2 for `set` of an array, 0 for neither.
  fileprivate var strictness: Int {
    switch self {
    case .move, .moveByID, .remove, .insert, .put: 1
    case .set(let feed, _) where feed.hasPrefix("a"): 2
    default: 0
    }
  }
}
