import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem
import Synchronization

extension Engine: RecoveryTarget {}

/// Reports the progress of a recovery from its own thread. A single batch may take long, and the service manager times
/// out a start that reports nothing.
final class RecoveryReporter: Sendable {
  private let interval: Duration
  /// Nanoseconds after which a batch counts as slow.
  private let longBatch: UInt64

  private struct State {
    var progress = RecoveryProgress()
    /// The time when the current batch began.
    var batchBegan: UInt64 = 0
    var isOver = false
  }

  private let state = Guarded(State())
  private let wakeUp: WakeUp
  private let thread = Guarded<Thread?>(nil)

  /// Starts the thread.
  /// - Parameters:
  ///   - interval: the time between two reports.
  ///   - longBatch: the time after which a report warns of a slow batch.
  ///   - report: called on the reporter's thread.
  init(
    every interval: Duration = .seconds(2), longBatch: Duration = .seconds(10),
    _ report: @escaping @Sendable (RecoveryReport) -> Void
  ) throws(SystemError) {
    self.interval = interval
    self.longBatch = longBatch.clampedNanoseconds
    wakeUp = try WakeUp()
    let started = try Thread("recovery") { self.run(report) }
    thread.withLock { $0 = started }
  }

  func note(_ progress: RecoveryProgress) {
    state.withLock { state in
      if state.progress.row != progress.row { state.batchBegan = MonotonicClock.now }
      state.progress = progress
    }
  }

  /// Stops reporting.
  func stop() {
    state.withLock { $0.isOver = true }
    wakeUp.signal()
    thread.withLock { $0.take() }?.join()
  }

  private func run(_ report: (RecoveryReport) -> Void) {
    var warnedOf: Int64 = 0
    while true {
      _ = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: interval)
      let state = state.withLock { $0 }
      if state.isOver { return }
      let row = state.progress.row
      let time = row == 0 ? 0 : MonotonicClock.now &- state.batchBegan
      let isLong = row != 0 && time >= longBatch
      report(
        RecoveryReport(
          progress: state.progress, seconds: time / 1_000_000_000, isNewWarning: isLong && row != warnedOf))
      if isLong { warnedOf = row }
    }
  }
}

/// The progress of a recovery.
struct RecoveryReport {
  let progress: RecoveryProgress
  /// The seconds that the current batch has taken.
  let seconds: UInt64
  /// Whether the current batch is slow and was not reported as slow before.
  let isNewWarning: Bool

  /// A line for the log and the service manager.
  var text: String {
    let batches = counted(progress.batches, "batch", plural: "batches")
    var text = "recovering: \(counted(progress.elements, "element")), \(batches) of the log"
    if seconds > 0 { text += "; batch \(progress.row) has taken \(seconds) s so far" }
    return text
  }

  /// A warning about a slow batch, with the next step.
  var warning: String {
    "batch \(progress.row) of the log has taken \(seconds) s so far; wait for it, or, if it never "
      + "ends, start once with --skip-batch \(progress.row), which loses its changes and begins a new epoch"
  }
}

extension Notify {
  /// Tells the service manager how far a recovery is, which is no reason to time out.
  func reportRecovery(_ text: String) { try? send(.status(text), .extendTimeout(.seconds(60)), .watchdog) }
}

/// The daemon's clock: starts at the time of day and advances steadily, also while the machine is suspended. It starts later
/// than every stored time of an earlier process. So ages are right across restarts, and setting the time of day back has no
/// effect.
struct ServerClock {
  /// Nanoseconds to add to the clock since the boot. They wrap if the time of day is earlier, as without a hardware clock.
  private let offset: UInt64

  /// - Parameter stored: the latest stored time of an earlier process; 0 if there is none.
  init(after stored: UInt64) { offset = max(WallClock.now, stored &+ 1) &- BootClock.now }

  /// The nanoseconds by which a stored time may be later than the time of day without a warning.
  private static let tolerance: UInt64 = 60_000_000_000

  /// Says that the clock begins later than the time of day because of the latest stored time; nil unless it is much later. The
  /// time of day was wrong then, or is now.
  static func warning(after stored: UInt64) -> String? {
    guard stored > WallClock.now &+ tolerance else { return nil }
    return "the newest change was stored at \(WallClock.text(stored)), which is later than the system's clock; "
      + "elements with \"until\" expire too early until it reaches that time"
  }

  var now: Instant { Instant(nanoseconds: BootClock.now &+ offset) }

  /// Milliseconds from now until `deadline`, as a timeout. Waits do not count the time of a suspension, so they may end later
  /// after one, unless a client is connected or connects: see ``Engine/nextDeadline``.
  func milliseconds(until deadline: Instant) -> Int32 {
    MonotonicClock.milliseconds(from: now.nanoseconds, until: deadline.nanoseconds)
  }
}

/// The time of a cycle of the loop, and the number of cycles.
struct CycleTime {
  let clock: ServerClock
  private(set) var now: Instant
  private(set) var cycles = 0

  init(_ clock: ServerClock) { (self.clock, now) = (clock, clock.now) }

  mutating func beginCycle() {
    cycles &+= 1
    read()
  }

  /// Sets the time to that of the clock, in work that takes long.
  mutating func read() { now = clock.now }
}
