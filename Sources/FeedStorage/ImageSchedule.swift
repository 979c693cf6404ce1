/// When images are written.
public struct ImagePolicy: Sendable, Equatable {
  /// Bytes of journal up to which no image is needed.
  public var journalBytes = 128 << 20
  /// Seconds after which an image is written even if the journal is short.
  public var interval = 6 * 3600
  /// Nanoseconds without a batch after which a cheap image is written, so that the file shows the elements.
  public var idle: UInt64 = 1_000_000_000
  /// Bytes of an image that is cheap; a larger one is cheap when the journal has a quarter of its bytes.
  public var idleBytes = 1 << 20
  /// Nanoseconds that a turn spends on an image, and a transaction on deleting what is no longer needed.
  public var step: UInt64 = 2_000_000

  public init() {}
}

/// Decides when to begin an image, and when to try again after a failure. Used by the engine's thread.
///
/// Invariant: an image is begun only when there is journal to cover, and none while another is written or while what a
/// former one left is deleted.
struct ImageSchedule {
  /// Nanoseconds between a failure and the next attempt.
  private static let retryPause: UInt64 = 10_000_000_000
  /// What a row of the journal costs besides its requests.
  private static let rowOverhead = 64

  private enum State {
    case idle
    /// An image is under way. Bytes of journal that came since it was begun.
    case writing(later: Int)
    /// What is no longer needed is being deleted.
    case cleaning
  }

  let policy: ImagePolicy
  /// Bytes of journal that the newest complete image does not cover.
  private(set) var journalBytes = 0
  /// Bytes of the newest complete image; 0 before the first.
  private(set) var imageBytes = 0
  private var state = State.idle
  /// Whether an image should replace the journal at once, however short it is.
  private var isUrgent = false
  /// When the newest complete image was finished, and when the last batch was stored.
  private var imagedAt: UInt64
  private var appendedAt: UInt64
  /// When an image may be begun after a failure; 0 when the last one did not fail.
  private var resumesAt: UInt64 = 0

  init(_ policy: ImagePolicy, now: UInt64) {
    self.policy = policy
    imagedAt = now
    appendedAt = now
  }

  /// Takes over what was recovered.
  mutating func didRecover(_ found: LogDatabase.Recovered, hasWaste: Bool) {
    journalBytes = found.progress.batchBytes + found.progress.batches * Self.rowOverhead
    imageBytes = found.image.bytes
    isUrgent = found.needsImage
    state = hasWaste ? .cleaning : .idle
  }

  /// A batch was stored. O(1).
  mutating func didAppend(bytes: Int, now: UInt64) {
    let bytes = bytes + Self.rowOverhead
    journalBytes += bytes
    if case .writing(let later) = state { state = .writing(later: later + bytes) }
    appendedAt = now
  }

  /// Whether an image should be begun now.
  func wantsImage(now: UInt64) -> Bool {
    guard case .idle = state, journalBytes > 0, now >= resumesAt else { return false }
    return isLong || now >= latestMoment
  }

  /// Nanoseconds until `wantsImage` becomes true without another event; nil when it does not.
  func pause(now: UInt64) -> UInt64? {
    guard case .idle = state, journalBytes > 0 else { return nil }
    let moment = isLong ? resumesAt : max(latestMoment, resumesAt)
    return moment > now ? moment - now : 0
  }

  private var isLong: Bool { journalBytes > max(policy.journalBytes, imageBytes) }

  /// When an image should be written at the latest: soon after the last batch if it is cheap.
  private var latestMoment: UInt64 {
    let isCheap = imageBytes <= policy.idleBytes || journalBytes >= imageBytes / 4
    let latest = imagedAt &+ UInt64(policy.interval) &* 1_000_000_000
    return isCheap ? min(appendedAt &+ policy.idle, latest) : latest
  }

  /// Whether a start should write an image before it serves: the journal should not be executed again, or is so long that
  /// runs which end before they can write an image would make each start longer than the one before.
  var isOverdue: Bool { isUrgent || journalBytes / 2 > max(policy.journalBytes, imageBytes) }

  /// Whether there is something that an image replaces.
  var needsImage: Bool { journalBytes > 0 || isUrgent }

  /// Whether an image is under way.
  var isWriting: Bool { if case .writing = state { true } else { false } }

  mutating func didBegin() { state = .writing(later: 0) }

  /// The image under way is complete. Returns whether it is the first after a failure.
  mutating func didComplete(bytes: Int, now: UInt64) -> Bool {
    guard case .writing(let later) = state else { return false }
    state = .cleaning
    imageBytes = bytes
    journalBytes = later
    imagedAt = now
    isUrgent = false
    defer { resumesAt = 0 }
    return resumesAt != 0
  }

  /// Nothing is left to delete.
  mutating func didClean() {
    if case .cleaning = state { state = .idle }
  }

  /// The image under way was given up. Returns whether it is the first failure.
  mutating func didFail(now: UInt64) -> Bool {
    state = .cleaning
    return pauseAfterFailure(now: now)
  }

  /// Deleting failed; it is tried again. Returns whether it is the first failure.
  mutating func didFailToClean(now: UInt64) -> Bool { pauseAfterFailure(now: now) }

  private mutating func pauseAfterFailure(now: UInt64) -> Bool {
    defer { resumesAt = now &+ Self.retryPause }
    return resumesAt == 0
  }
}
