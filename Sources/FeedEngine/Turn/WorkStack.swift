import FeedJSON
import FeedModel
import FeedWire

/// A stack on which long work runs in slices, and the time of a slice.
///
/// The work and its caller never run at the same time.
public protocol SliceRunner: AnyObject {
  /// Whether each request that changes feeds is sliced as finely as possible. For tests.
  var isEager: Bool { get }
  func beginSlice()
  /// The nanoseconds left of the slice of this turn; 0 if it is used up.
  var timeLeft: UInt64 { get }
  /// Runs `work` until it ends or calls ``suspend()``. Returns whether it has ended.
  func run(_ work: @escaping () -> Void) -> Bool
  /// Continues suspended work. Returns whether it has ended.
  func resume() -> Bool
  /// Suspends the work until ``resume()``. Called by the work.
  func suspend()
  /// Ends the stack. No work is under way.
  func end()
}

/// Runs one work at a time on a second stack, in slices of the turns.
///
/// Without a ``SliceRunner`` all work is done at once.
final class WorkStack {
  private let runner: (any SliceRunner)?
  /// Whether work can take several turns.
  let isSliced: Bool
  /// Whether work looks at the clock after each of its steps. For tests.
  let isEager: Bool
  /// Whether work has begun and not ended.
  private(set) var isUnderWay = false
  /// Whether the rest of the work is done without stopping.
  private var isHurried = false

  init(_ runner: (any SliceRunner)?) {
    self.runner = runner
    isSliced = runner != nil
    isEager = runner?.isEager ?? false
  }

  /// The work between two looks at the clock, in units of about a microsecond.
  var unitsPerLook: Int { isEager ? 0 : 128 }

  func beginSlice() { runner?.beginSlice() }

  /// The nanoseconds left of the slice of this turn; the maximum if work is not sliced.
  var timeLeft: UInt64 { runner?.timeLeft ?? .max }
  /// Whether the slice of this turn is used up.
  var isSliceOver: Bool { timeLeft == 0 }

  /// Does work, at least a first slice of it. Returns whether it is done.
  func run(_ work: @escaping () -> Void) -> Bool {
    precondition(!isUnderWay, "other work is under way")
    guard let runner else {
      work()
      return true
    }
    isUnderWay = true
    return end(runner.run(work))
  }

  /// Does another slice of the work. Returns whether it is done.
  func resume() -> Bool {
    guard isUnderWay, let runner else { return true }
    return end(runner.resume())
  }

  private func end(_ isDone: Bool) -> Bool {
    isUnderWay = !isDone
    return isDone
  }

  /// Whether the work stops now until another turn. Asked by the work, which then calls ``suspend()``.
  var shallStop: Bool { isUnderWay && !isHurried && isSliceOver }

  /// Stops the work until another turn.
  func suspend() { runner?.suspend() }

  /// Does the rest of the work without stopping.
  func hurry() {
    isHurried = true
    while !resume() {}
    isHurried = false
  }

  /// Does the rest of the work, and ends the stack.
  func finish() {
    hurry()
    runner?.end()
  }
}

/// Long work that changes no feeds, done one after another on a second stack, in slices of the turns. Users take turns.
///
/// Feeds may change between two slices, so the work reads snapshots. Invariant: the current work is under way on the stack, and not
/// in the queue.
final class ReadStack<Work: AnyObject> {
  private let stack: WorkStack
  private var queue = UserQueue<Work>()
  private(set) var current: Work?
  /// Whether the current work shall end, because nobody wants its result.
  private(set) var isCancelled = false

  init(_ runner: (any SliceRunner)? = nil) { stack = WorkStack(runner) }

  var isSliced: Bool { stack.isSliced }
  var isEager: Bool { stack.isEager }
  var unitsPerLook: Int { stack.unitsPerLook }
  var isSliceOver: Bool { stack.isSliceOver }
  var hasWork: Bool { current != nil || !queue.isEmpty }

  /// Lets work wait for its turn. Returns its place, by which it can be cancelled.
  func append(_ work: Work, of uid: UInt32) -> Int { queue.append(work, of: uid) }

  /// Works for the time of a slice.
  /// - Parameter body: does the work. It calls ``look()`` now and then.
  func advance(_ body: @escaping (Work) -> Void) {
    if !hasWork { return }
    stack.beginSlice()
    repeat {
      if current == nil {
        guard let next = queue.takeFirst() else { return }
        current = next
        guard stack.run({ body(next) }) else { return }
      } else if !stack.resume() {
        return
      }
      current = nil
    } while !stack.isSliceOver
  }

  /// Stops the work until another turn, if the slice of this one is used up.
  func look() {
    if stack.shallStop { stack.suspend() }
  }

  /// Ends work, or removes it from the queue.
  func cancel(_ work: Work, at place: Int, of uid: UInt32) {
    if current === work { cancelCurrent() } else { queue.remove(at: place, of: uid) }
  }

  private func cancelCurrent() {
    isCancelled = true
    stack.hurry()
    isCancelled = false
    current = nil
  }

  /// Ends all work and the stack.
  func finish() {
    cancelCurrent()
    queue = UserQueue()
    stack.finish()
  }
}

/// The request that changes feeds and takes several turns.
///
/// While it is under way, nothing else changes feeds. Others read the state before it, except in the time in which its
/// change takes effect (``isExclusive``): then only feeds that it does not concern are read (`LongCommit.isReadable`).
///
/// Invariant: the pace of commits stops only while work is under way.
final class LongWork {
  private let commit: Commit
  private let stack: WorkStack
  /// Whether feeds are half changed, so that nothing may read these.
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
  /// Whether a request waits until feeds are not half changed: it may read them when it is decoded, or the access rules depend on what
  /// they show.
  func mustWait(_ method: Method, _ request: Request, of session: Session) -> Bool {
    let isRestricted = access.isRestricted && !access.isPrivileged(session.peer)
    if isRestricted && method.isLogged { return true }
    return (isRestricted || session.line.isEmpty) && !isReadable(method, request)
  }

  /// Whether a request that is first in its line can be decoded, and executed if it only reads, while feeds are half
  /// changed.
  private func isReadable(_ method: Method, _ request: Request) -> Bool {
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
