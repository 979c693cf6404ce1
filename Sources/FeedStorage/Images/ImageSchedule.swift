import FeedModel

public struct ImagePolicy: Sendable, Equatable {
  /// The number of log bytes up to which no image is needed.
  public var journalBytes = 16 << 20
  /// The number of filter steps up to which no image is needed: replay repeats them within a few seconds.
  public var steps: UInt64 = 200_000_000
  /// Seconds after which an image is written even if the log is short.
  public var interval = 6 * 3600
  /// Nanoseconds without a batch after which a cheap image is written, so that the file contains the elements.
  public var idle: UInt64 = 1_000_000_000
  /// The maximum bytes of a cheap image. A larger image is cheap if the log has at least a quarter of its bytes.
  public var idleBytes = 1 << 20
  /// Nanoseconds that a turn spends on an image.
  public var step: UInt64 = 2_000_000

  public init() {}
}

/// Decides when to begin an image, and when to retry after a failure. Used by the engine's thread.
///
/// Invariant: an image is begun only if there is log to cover and a segment that continues it, and not while another image is
/// written.
struct ImageSchedule {
  /// Nanoseconds between a failure and the next attempt.
  private static let retryPause: UInt64 = 10_000_000_000
  /// Nanoseconds between two images, the first of which lacked room that is there now.
  private static let roomPause: UInt64 = 1_000_000_000
  /// The bytes of log below which an image gains too little room.
  private static let leastGain = 1 << 20
  /// The bytes that stay free beside the next image while it is written.
  private static let margin = 4 << 20

  private enum State {
    case idle
    /// An image is being written. `later` counts the bytes of log since it was begun, which was after so many steps.
    case writing(later: Int, steps: UInt64)
  }

  let policy: ImagePolicy
  /// The bytes of log that the newest complete image does not cover.
  private(set) var journalBytes = 0
  /// The filter steps of all requests, and of those that the newest complete image covers.
  private var steps: (all: UInt64, covered: UInt64) = (0, 0)
  /// Bytes of the newest complete image; 0 before the first.
  private(set) var imageBytes = 0
  private(set) var nextImageBytes = 0
  private var state = State.idle
  /// Whether an image should be written immediately, whatever the length of the log.
  private var isUrgent = false
  /// Whether little space is free.
  private var isTight = false
  /// Whether a batch waits for the room that an image gains.
  private var isAwaited = false
  /// Whether an image was requested that is not complete yet.
  private var isRequested = false
  /// Whether no segment would continue an image. A start would miss that segment and refuse the state.
  private(set) var isHeld = false
  /// The time when the newest image was completed, and the time when the last batch was stored.
  private var imagedAt: UInt64
  private var appendedAt: UInt64
  /// The time when an image may be begun after a failure; 0 if the last one did not fail.
  private var resumesAt: UInt64 = 0
  /// When the last image failed, if there was no room for it.
  private var lackedRoomAt: UInt64?

  init(_ policy: ImagePolicy, now: UInt64) {
    self.policy = policy
    imagedAt = now
    appendedAt = now
  }

  /// Initializes the counts after recovery.
  /// - Parameter needsImage: whether what the state was read from must be replaced.
  mutating func didRecover(_ progress: RecoveryProgress, imageBytes: Int, needsImage: Bool) {
    journalBytes = progress.batchBytes + progress.batches * RecordHeader.byteCount
    self.imageBytes = imageBytes
    isUrgent = needsImage
  }

  /// Lets an image begin as soon as there is log to cover, whatever its length.
  mutating func request() { isRequested = true }

  /// Begins no image before a batch is stored, because there is no segment that continues an image.
  mutating func hold() { isHeld = true }

  /// Records that a batch was stored. O(1).
  mutating func didAppend(bytes: Int, now: UInt64) {
    isHeld = false
    let bytes = bytes + RecordHeader.byteCount
    journalBytes += bytes
    if case .writing(let later, let steps) = state { state = .writing(later: later + bytes, steps: steps) }
    appendedAt = now
  }

  /// Records how many filter steps all requests so far took, and how large the state is. O(1).
  mutating func didExecute(steps all: UInt64, stateBytes: Int) {
    steps.all = all
    // An image has more bytes than its elements; the last one shows how many if the state is about the same.
    nextImageBytes = max(imageBytes, stateBytes + stateBytes / 4) + (256 << 10)
    if stateBytes < imageBytes / 2 { nextImageBytes = stateBytes + stateBytes / 2 + (256 << 10) }
  }

  /// Records how many bytes are free after a segment was begun or removed.
  mutating func didMeasure(free: Int) { isTight = free < nextImageBytes + Self.margin }

  /// Whether there is room again for the image that failed for want of it. It need not wait longer.
  /// - Parameter free: the bytes that are free.
  func hasRoomAgain(free: Int) -> Bool { lackedRoomAt != nil && hasLogToCover && free >= nextImageBytes }

  /// A batch waits for room. Returns whether an image may gain some.
  /// - Parameter free: the bytes that are free.
  mutating func awaitRoom(free: Int, now: UInt64) -> Bool {
    if isWriting { return true }
    // Some file systems report later what was freed.
    if let lackedRoomAt, hasRoomAgain(free: free) { resumesAt = min(resumesAt, lackedRoomAt &+ Self.roomPause) }
    guard hasLogToCover, now >= resumesAt else { return false }
    isAwaited = true
    return true
  }

  private var hasLogToCover: Bool { journalBytes > 0 && !isHeld }

  func wantsImage(now: UInt64) -> Bool {
    guard case .idle = state, hasLogToCover, now >= resumesAt else { return false }
    return isLong || now >= latestMoment
  }

  /// Nanoseconds until `wantsImage` becomes true without another event; nil if it will not.
  func pause(now: UInt64) -> UInt64? {
    guard case .idle = state, hasLogToCover else { return nil }
    let moment = isLong ? resumesAt : max(latestMoment, resumesAt)
    return moment > now ? moment - now : 0
  }

  /// Whether replay would take long, or the room of the log is wanted. The limits grow with the image, so that images take
  /// a part of the work only.
  private var isLong: Bool {
    isAwaited || isRequested || journalBytes > max(policy.journalBytes, imageBytes)
      || isTight && journalBytes > max(Self.leastGain, imageBytes / 8)
      || steps.all &- steps.covered > max(policy.steps, UInt64(imageBytes / 2))
  }

  /// The latest time for the next image: soon after the last batch if the image is cheap.
  private var latestMoment: UInt64 {
    let isCheap = imageBytes <= policy.idleBytes || journalBytes >= imageBytes / 4
    let latest = imagedAt &+ UInt64(policy.interval) &* 1_000_000_000
    return isCheap ? min(appendedAt &+ policy.idle, latest) : latest
  }

  /// Whether a start should write an image before the daemon serves: the log must not be replayed again, or it is so long
  /// that processes that end before they write an image would make every start slower than the last.
  var isOverdue: Bool { isUrgent || journalBytes / 2 > max(policy.journalBytes, imageBytes) }

  /// Whether a new image would cover more than the newest one.
  var needsImage: Bool { (journalBytes > 0 || isUrgent) && !isHeld }

  /// Whether an image is being written.
  var isWriting: Bool { if case .writing = state { true } else { false } }

  mutating func didBegin() { state = .writing(later: 0, steps: steps.all) }

  /// Records that the image is complete. Returns whether it is the first one after a failure.
  mutating func didComplete(bytes: Int, now: UInt64) -> Bool {
    guard case .writing(let later, let begun) = state else { return false }
    state = .idle
    imageBytes = bytes
    journalBytes = later
    steps.covered = begun
    imagedAt = now
    (isUrgent, isAwaited, isRequested, lackedRoomAt) = (false, false, false, nil)
    defer { resumesAt = 0 }
    return resumesAt != 0
  }

  /// Records that the image was abandoned. Returns whether this is the first failure.
  /// - Parameter free: the bytes that are free without it.
  mutating func didFail(free: Int, now: UInt64) -> Bool {
    state = .idle
    isAwaited = false
    lackedRoomAt = free < nextImageBytes ? now : nil
    defer { resumesAt = now &+ Self.retryPause }
    return resumesAt == 0
  }
}
