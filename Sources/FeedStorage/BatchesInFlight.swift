import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The batch in flight, the events about batches, and the places of batches in the log.
///
/// Invariant: a batch in flight has no event yet, and its number is the last one that was begun.
struct BatchesInFlight {
  private var inFlight: (number: UInt64, bytes: Int)?
  /// Events that were not returned yet.
  private var events: [LogEvent] = []
  /// The last two stored batches, with their numbers in the log. The first of them may be the last executed batch.
  private var stored: [(number: UInt64, place: UInt64)] = []
  /// The last batch of the log before the first one.
  private let first: UInt64

  init(after place: UInt64) { first = place }

  var hasEvent: Bool { !events.isEmpty }

  mutating func begin(_ batch: LogBatch) {
    precondition(inFlight == nil, "one batch may be in flight")
    assert(stored.last.map { batch.number > $0.number } ?? true, "numbers of batches only grow")
    inFlight = (batch.number, batch.frames.count)
  }

  /// Records that the batch is stored as a batch of the log. Returns its bytes.
  mutating func didStore(_ number: UInt64, as place: UInt64) -> Int {
    assert(inFlight?.number == number && place > self.place(of: .max))
    let bytes = inFlight?.bytes ?? 0
    inFlight = nil
    if stored.count == 2 { stored.removeFirst() }
    stored.append((number, place))
    events.append(.stored(through: number))
    return bytes
  }

  mutating func didFail(_ number: UInt64, _ reason: String) {
    assert(inFlight?.number == number)
    inFlight = nil
    events.append(.failed(from: number, through: number, reason: reason))
  }

  mutating func takeEvent() -> LogEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The number in the log of a batch, or of the last batch before that number.
  func place(of number: UInt64) -> UInt64 { stored.last { $0.number <= number }?.place ?? first }
}

/// Whether the log has room for batches.
///
/// Invariant: only the batch in flight waits for room. After it was refused, there is a shortage until there is room again.
struct RoomForBatches {
  /// Nanoseconds between two looks at the free space.
  private static let pause: UInt64 = 20_000_000

  /// Whether the batch in flight waits for room.
  private(set) var isAwaited = false
  /// The reason why there was no room for a batch, and the time when to look again whether there is.
  private var lack: (reason: String, looksAgainAt: UInt64)?

  mutating func beginToWait() { isAwaited = true }
  mutating func didStore() { isAwaited = false }

  mutating func didFail(_ error: StorageError, now: UInt64) {
    if isAwaited { lack = (error.description, now &+ Self.pause) }
    isAwaited = false
  }

  /// The reason why there is no room; nil if there is. Looks at the free space only after a batch was refused, and not each time.
  mutating func shortage(_ hasRoom: () -> Bool) -> String? {
    guard let (reason, time) = lack else { return nil }
    let now = MonotonicClock.now
    if now < time { return reason }
    lack = hasRoom() ? nil : (reason, now &+ Self.pause)
    return lack?.reason
  }
}

/// Decides whether the caller of the log writes the batch in flight itself, from the time that writes took.
///
/// A write to the system's memory takes microseconds, until a slow disk has too much left to store: then the system lets the
/// writer wait. One such wait is noticed; the thread of the log writes from then on, so that only the requests of its batches
/// wait. All times are of `MonotonicClock`.
struct WriteTimes {
  /// Nanoseconds from which on a write had to wait.
  private static let slow: UInt64 = 2_000_000
  /// Nanoseconds for which the thread writes after a wait: the first time, as a busy processor causes one, and at most.
  private static let pauses: (first: UInt64, last: UInt64) = (100_000_000, 10_000_000_000)

  /// Whether the caller always writes, because time must not decide anything.
  private let areIgnored: Bool
  /// The time when the batch in flight was appended.
  private var startedAt: UInt64 = 0
  private var resumesAt: UInt64 = 0
  private var pause = Self.pauses.first

  init(areIgnored: Bool = false) { self.areIgnored = areIgnored }

  /// Records that a batch is appended. Returns whether the caller should write it.
  mutating func begin(at now: UInt64) -> Bool {
    startedAt = now
    return now >= resumesAt
  }

  /// Records the end of a write of the caller.
  mutating func didWrite(at end: UInt64) {
    if areIgnored { return }
    if end &- startedAt >= Self.slow {
      resumesAt = end &+ pause
      pause = min(pause &* 2, Self.pauses.last)
    } else if end &- resumesAt > Self.pauses.last {
      pause = Self.pauses.first
    }
  }

  /// Records that a batch is stored. A slow one lets the thread write on, if it does.
  mutating func didStore(at end: UInt64) {
    if end < resumesAt, end &- startedAt >= Self.slow { resumesAt = end &+ pause }
  }
}

/// The results that the threads of a log report to the engine's thread.
final class LogNotices: Sendable {
  enum Notice: Sendable {
    /// The batch is stored as this batch of the log.
    case stored(UInt64, batch: UInt64)
    case failed(UInt64, StorageError)
    /// The log may contain the batch. `failed` follows when it has been erased.
    case uncertain(StorageError)
    /// The batch waits: there is no room for it before an image is complete.
    case waitsForRoom(UInt64)
    /// A part of this image was written. Another may be sent.
    case partWritten(UInt64)
    /// This image is complete, and has replaced the one before.
    case imageComplete(UInt64, bytes: Int, fileBytes: Int)
    /// This image was abandoned.
    case imageFailed(UInt64, StorageError)
    /// The bytes of the segments after some were begun or removed.
    case segments(bytes: Int)
  }

  private let notices = Guarded<[Notice]>([])
  private let hasNotices = Atomic<Bool>(false)
  private let wakeUp: WakeUp

  init() throws(SystemError) { wakeUp = try WakeUp() }

  /// Readable while there are notices.
  var descriptor: Int32 { wakeUp.descriptor }

  func post(_ notice: Notice) {
    notices.withLock { $0.append(notice) }
    wake()
  }

  /// Makes the descriptor readable until the next `take`.
  func wake() {
    hasNotices.store(true, ordering: .releasing)
    wakeUp.signal()
  }

  /// Removes and returns all notices, in order. O(1) if there are none.
  func take() -> [Notice] {
    guard hasNotices.load(ordering: .relaxed), hasNotices.exchange(false, ordering: .acquiring) else { return [] }
    wakeUp.clear()
    return notices.withLock { notices in
      defer { notices.removeAll() }
      return notices
    }
  }

  /// Waits until there are notices, or until the timeout.
  func wait(milliseconds: Int) {
    _ = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: .milliseconds(milliseconds))
  }
}
