import FeedEngine
import FeedSystem

/// Runs long work of the engine in slices of a few milliseconds, on a stack of its own.
public final class SlicedWork: SliceRunner {
  /// Nanoseconds of a turn for the work.
  public static let standardSlice: UInt64 = 2_000_000

  private let coroutine: Coroutine
  private let slice: UInt64
  public let isEager: Bool
  private var deadline: UInt64 = 0

  /// - Parameters:
  ///   - name: the name of the thread, at most 15 bytes.
  ///   - slice: nanoseconds; with 0, work stops whenever it looks at the clock.
  ///   - isEager: whether each request that changes feeds is sliced as finely as possible.
  public init(_ name: String, slice: UInt64 = SlicedWork.standardSlice, isEager: Bool = false) {
    coroutine = Coroutine(name)
    self.slice = slice
    self.isEager = isEager
  }

  public func beginSlice() { deadline = MonotonicClock.now &+ slice }
  public var timeLeft: UInt64 {
    let now = MonotonicClock.now
    return now < deadline ? deadline &- now : 0
  }

  public func run(_ work: @escaping () -> Void) -> Bool {
    do {
      return try coroutine.run(work)
    } catch {
      // No thread can be started now. Then the work holds up the others.
      work()
      return true
    }
  }

  public func resume() -> Bool { coroutine.resume() }
  public func suspend() { coroutine.suspend() }
  public func end() { coroutine.end() }
}
