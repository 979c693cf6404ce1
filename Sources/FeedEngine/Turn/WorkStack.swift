import FeedModel

/// A stack on which long work runs in slices, and the time of a slice.
///
/// The work and its caller never run at the same time.
public protocol SliceRunner: AnyObject {
  /// Whether each request that changes feeds is sliced as finely as possible. For tests.
  var isEager: Bool { get }
  /// Begins the slice of a turn.
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

  /// Begins the slice of a turn.
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

  init(_ runner: (any SliceRunner)? = nil) {
    stack = WorkStack(runner)
  }

  var isSliced: Bool { stack.isSliced }
  var isEager: Bool { stack.isEager }
  var unitsPerLook: Int { stack.unitsPerLook }
  var isSliceOver: Bool { stack.isSliceOver }
  var hasWork: Bool { current != nil || !queue.isEmpty }

  /// Lets work wait for its turn. Returns its place, by which it can be cancelled.
  func append(_ work: Work, of uid: UInt32) -> Int { queue.append(work, of: uid) }

  /// Works for the time of a slice.
  ///
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
