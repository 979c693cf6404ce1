/// An append-only log that stores every request that may change something, before it is executed.
///
/// State is a deterministic function of the log: executing its batches in order gives the same feeds and revisions. The log
/// decides the order and says when a batch is stored; the turn executes a batch, answers its requests and publishes its
/// changes only then.
///
///     log.append(batch)                  // returns at once
///     while let event = log.nextEvent() {
///       switch event {
///       case .stored(let number): …      // execute the batches up to `number`, answer their requests
///       case .failed(let number, let reason): …  // refuse the requests of `number` and of all batches after it
///       case .received(let batch): …     // another member's batch: execute it, answer nobody
///       case .lost(let reason): …        // stop serving
///       }
///     }
///
/// All calls come from the engine's thread. A log that writes on a thread of its own makes ``descriptor`` readable when it
/// has an event.
public protocol CommitLog: AnyObject {
  /// The number of batches that may be in flight at once, at least 1. Appending more is a programming error.
  var window: Int { get }

  /// Whether `append` has stored the batch when it returns and cannot fail. Only a log that keeps nothing can promise that.
  var storesAtOnce: Bool { get }

  /// Readable while there is an event to take; nil when events only follow `append`, within the call.
  var descriptor: Int32? { get }

  /// Takes a sealed batch to store. Returns at once; ``nextEvent()`` tells later whether it is stored. Batches are stored in
  /// the order of their numbers.
  func append(_ batch: LogBatch)

  /// The next event in the log's order, or nil. Never waits. O(1).
  func nextEvent() -> LogEvent?

  /// Allows the log to discard batches up to `number`: an image covers them.
  func release(through number: UInt64)

  /// Stores what is in flight and ends the log's thread. Gives up waiting for it after so many nanoseconds.
  func close(within nanoseconds: UInt64)
}

/// Stores images of the state beside a log, so that a start need not execute the whole log. All calls come from the engine's
/// thread.
public protocol ImageStore: AnyObject {
  /// Nanoseconds until ``workOnImage(executed:isBusy:_:)`` has something to do although nothing happens; nil when only an event
  /// can bring that about.
  var imagePause: UInt64? { get }

  /// Does a small part of the work on an image, after a turn's bytes are written. Begins one if it is due.
  /// - Parameters:
  ///   - number: the last batch that was executed; no other is being executed.
  ///   - isBusy: whether the turn had requests, so that the part should be smaller.
  ///   - makeImage: makes an image of the state after that batch.
  func workOnImage(executed number: UInt64, isBusy: Bool, _ makeImage: () -> CatalogImage)
}

/// What a log tells the turn.
public enum LogEvent {
  /// All own batches up to this number are stored.
  case stored(through: UInt64)
  /// This batch and all later ones in flight are not stored, and no replay will contain them.
  case failed(from: UInt64, reason: String)
  /// A batch of another member of a replicated log; nobody here waits for its answers.
  case received(LogBatch)
  /// The log cannot tell what is stored. The daemon must stop serving.
  case lost(reason: String)
}

/// Requests that are stored together and executed at one moment. Immutable.
///
/// The frames are as they came: a 4-byte big-endian length and a JSON text each, in order of execution.
public final class LogBatch: @unchecked Sendable {
  /// The number of the batch in its log: the one before plus 1.
  public let number: UInt64
  /// The moment at which all of the batch is executed, in replay as well.
  public let at: Instant
  /// The revision before the batch; nil when other batches were in flight as it was sealed.
  public let revision: UInt64?
  /// The framed requests. Valid as long as the batch, and until the log reported it as stored or failed: the turn reuses the
  /// memory then.
  public let frames: UnsafeRawBufferPointer
  /// What owns the memory of `frames`; nil when the caller keeps it alive.
  private let owner: AnyObject?

  public init(
    number: UInt64, at: Instant, revision: UInt64?, frames: UnsafeRawBufferPointer, owner: AnyObject? = nil
  ) {
    self.number = number
    self.at = at
    self.revision = revision
    self.frames = frames
    self.owner = owner
  }
}

/// A log that keeps nothing: what is executed is gone with the process.
public final class NoLog: CommitLog {
  public init() {}

  public var window: Int { 1 }
  public var storesAtOnce: Bool { true }
  public var descriptor: Int32? { nil }
  public func append(_ batch: LogBatch) { assertionFailure("nothing is appended to a log that keeps nothing") }
  public func nextEvent() -> LogEvent? { nil }
  public func release(through number: UInt64) {}
  public func close(within nanoseconds: UInt64) {}
}
