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
  /// Whether a request that is first in its line can be decoded, and executed if it only reads, while feeds are half
  /// changed.
  func isReadable(_ method: Method, _ request: Request) -> Bool {
    switch method {
    case .ping, .hello: true
    case .get, .range, .selected: feed(named: request.params?.member("feed")).map(commit.long.isReadable) ?? false
    default: method.isLogged
    }
  }
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
