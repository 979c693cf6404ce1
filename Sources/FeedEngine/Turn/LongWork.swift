import FeedJSON
import FeedModel
import FeedWire

/// The request that changes feeds and takes several turns.
///
/// While it is under way, nothing else changes feeds. Others read the state before it, except in the time in which its
/// change takes effect: then all that reads feeds waits (``isExclusive``).
///
/// Invariant: the pace of commits stops only while work is under way.
final class LongWork {
  private let commit: Commit
  private let stack: WorkStack
  /// Whether feeds are half changed, so that nothing may read them.
  private(set) var isExclusive = false

  init(_ commit: Commit, _ runner: (any SliceRunner)? = nil) {
    self.commit = commit
    stack = WorkStack(runner)
  }

  /// Whether work can take several turns.
  var isSliced: Bool { stack.isSliced }

  var isEager: Bool { stack.isEager }

  /// Whether work has begun and not ended.
  var isUnderWay: Bool { stack.isUnderWay }

  /// The memory in bytes that the work needs to undo what it has done. Not called by the work itself.
  var memory: Int { commit.undoMemory }

  /// Begins the slice of a turn.
  func beginTurn() { stack.beginSlice() }

  /// The nanoseconds left of this turn for requests that change feeds; the maximum if they are not sliced.
  var timeLeft: UInt64 { stack.timeLeft }
  /// Whether the time of this turn for requests that change feeds is used up.
  var isTurnOver: Bool { stack.isSliceOver }

  /// Does work that changes feeds, at least a first slice of it. Returns whether it is done.
  ///
  /// - Parameters:
  ///   - steps: the elements that it is expected to take time for; see `expectedSteps`.
  func run(steps: Int, _ work: @escaping () -> Void) -> Bool {
    guard isSliced else { return stack.run(work) }
    assert(!isUnderWay, "other work is under way")
    commit.long.announce(steps: isEager ? .max : max(1, steps))
    let units = stack.unitsPerLook
    commit.pace.begin(units: units) { [unowned self] in
      if stack.shallStop { suspend() }
      return units
    }
    return end(stack.run(work))
  }

  /// Does another slice of the work. Returns whether it is done.
  func resume() -> Bool { isUnderWay ? end(stack.resume()) : true }

  /// Does the rest of the work, and ends the thread.
  func finish() {
    let wasUnderWay = isUnderWay
    stack.finish()
    if wasUnderWay { _ = end(true) }
  }

  private func suspend() {
    isExclusive = !commit.long.isReadable
    commit.long.suspend()
    stack.suspend()
    commit.long.resume()
    isExclusive = false
  }

  private func end(_ isDone: Bool) -> Bool {
    if isDone {
      commit.pace.end()
      commit.long.announce(steps: 0)
    }
    return isDone
  }
}

extension Engine {
  /// The bytes of a request that may take longer than a slice.
  private static let longRequest = 16 << 10
  /// The bytes of one element, times the bins and views that look at its members, that take about a millisecond.
  private static let longUpdateOfOne = 1 << 20
  /// The bytes of an element that many filters may judge for longer than a slice.
  private static let longUpdate = 4 << 10
  /// The bytes of an element that a short patch may take longer than a slice to merge into.
  private static let longElement = 256 << 10
  /// The bytes of a transaction whose operations are looked at. A longer one names many elements.
  static let shortTransaction = 64 << 10
  /// The rows of a feed that a request may read or replace quickly.
  private static let manyRows = 4096

  /// Whether a request that changes feeds may take longer than a slice. If not, it is executed at once, which costs less.
  ///
  /// - Parameter parameters: not looked at for a short update.
  func mayBeLong(_ method: Method, _ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    guard longWork.isSliced, method.isLogged else { return false }
    if longWork.isEager { return true }
    if hasSlowFilters(parameters(), bytes: bytes) { return true }
    if method == .update { return mayBeLongUpdate(parameters(), bytes: bytes) }
    if bytes >= Self.longRequest { return true }
    switch method {
    case .patch:
      if parameters().member("where") != nil { return true }
      guard let feed = feed(parameters()), let longest = feed.kind.rows?.longestElement else { return false }
      return longest >= Self.longElement || feed.hasSlowFilters(for: bytes &+ longest)
        || bytes >= Self.longUpdate && bytes &* feed.sectionCount >= Self.longRequest
    case .set: return feed(parameters())?.kind.rows?.elementCount ?? 0 >= Self.manyRows
    case .delete, .move: return parameters().member("where") != nil
    case .define, .undefine, .activate, .insertChild, .removeChild: return true
    case .transaction: return parameters().member("ops").map(mayBeLong) ?? false
    default: return false
    }
  }

  /// Whether an update may take longer than a slice, apart from filters that may do so.
  private func mayBeLongUpdate(_ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    let parameters = parameters()
    if parameters.member("where") != nil { return true }
    // Most updates are shorter: for them the feed is not looked up.
    guard bytes >= Self.longUpdate, let feed = feed(parameters) else { return false }
    // A single element is scanned already. What is left for each bin and view is to look at its members.
    if parameters.member("element") != nil { return bytes &* catalog.readers(of: feed) >= Self.longUpdateOfOne }
    return bytes &* feed.sectionCount >= Self.longRequest
  }

  /// Whether filters of views or of bins may take long over the elements of a request. O(1) while no definition has such
  /// filters.
  func hasSlowFilters(_ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    guard catalog.mayHaveSlowViews || catalog.mayHaveSlowFilters(for: bytes) else { return false }
    guard let feed = feed(parameters()) else { return false }
    return feed.hasSlowFilters(for: bytes) || catalog.hasSlowViews(above: feed)
  }

  /// The bytes of a short element, with its part of the request.
  private static let bytesOfAnElement = 64
  /// The bytes of a request whose elements are counted. A longer one is long enough to make a copy.
  private static let countedRequest = 1 << 20
  /// The bytes that take as long as what each element takes apart from its bytes.
  private static let bytesOfAStep = 512

  /// The elements that a request is expected to take time for. Elements that it does not name, but judges or replaces, take a
  /// quarter of the time.
  func expectedSteps(of method: Method, _ parameters: Parameters, bytes: Int) -> Int {
    if method == .update, bytes <= Self.countedRequest, let elements = parameters.member("elements"),
      elements.kind == .array
    {
      return elements.count &+ bytes / Self.bytesOfAStep
    }
    return bytes / Self.bytesOfAnElement &+ elementsJudged(by: method, parameters, bytes: bytes) / 4
  }

  /// The elements that the operations of a short transaction judge or replace without naming them. What its other operations
  /// change in place is hidden for as long.
  private func elementsJudged(by method: Method, _ parameters: Parameters, bytes: Int) -> Int {
    guard method == .transaction, bytes < Self.shortTransaction, let operations = parameters.member("ops"),
      operations.kind == .array
    else { return 0 }
    return operations.elements.reduce(0) { sum, operation in
      let parameters = Parameters(object: operation.member("params"))
      switch operation.member("method").flatMap({ Method($0) }) {
      case .delete where parameters.judgesAllElements, .set, .define:
        return sum + (feed(parameters)?.kind.rows?.elementCount ?? 0)
      default: return sum
      }
    }
  }

  /// Whether a request that is first in its line can be decoded, and executed if it only reads, while feeds are half
  /// changed.
  func isReadable(_ method: Method, _ request: Request) -> Bool {
    switch method {
    case .ping, .hello: true
    case .get, .range, .selected: feed(Parameters(object: request.params)).map(commit.long.isReadable) ?? false
    default: method.isLogged
    }
  }

  private func mayBeLong(_ operations: JSONView) -> Bool {
    operations.kind == .array
      && operations.elements.contains { operation in
        guard let method = operation.member("method").flatMap({ Method($0) }) else { return false }
        return mayBeLong(method, Parameters(object: operation.member("params")), bytes: operation.text.count)
      }
  }

  private func feed(_ parameters: Parameters) -> Feed? { feed(named: parameters.member("feed")) }

  /// The feed that a parameter names; nil if there is none.
  func feed(named name: JSONView?) -> Feed? { name?.truncatedName.flatMap { try? catalog.feed(named: $0) } }
}

/// How often a turn looks at the clock between its requests: after each one while they take long, otherwise seldom, because
/// most requests take less than the look.
struct ClockLooks {
  /// The number of requests until the next look, and between two looks.
  private var left = longest
  private var interval = longest
  /// The time that was left of the turn at the last look, in nanoseconds; nil before the first one.
  private var timeLeft: UInt64?

  private static let longest = 8
  /// The time between two looks after which the next ones come sooner, in nanoseconds.
  private static let longTime: UInt64 = 500_000

  /// Begins a series of several requests. Costs a look.
  mutating func begin(_ work: LongWork) {
    timeLeft = work.timeLeft
    left = interval
  }

  /// Called after each request. Returns whether the turn's time for requests that change feeds is used up, as far as the
  /// clock was looked at.
  @inline(__always)
  mutating func isTurnOver(_ work: @autoclosure () -> LongWork) -> Bool {
    left -= 1
    return left <= 0 && look(work())
  }

  @inline(never)
  private mutating func look(_ work: LongWork) -> Bool {
    let now = work.timeLeft
    // After the end of the turn's time, the time of requests is not known.
    if let timeLeft, timeLeft > 0 {
      interval = timeLeft &- now >= Self.longTime ? max(1, interval / 2) : min(Self.longest, interval * 2)
    }
    (timeLeft, left) = (now, interval)
    return now == 0
  }
}
