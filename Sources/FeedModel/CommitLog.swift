/// An append-only log that stores every request that may change something, before it is executed.
///
/// State is a deterministic function of the log, which decides the order of batches and reports when one is stored.
/// Only then the turn executes it, answers its requests and publishes its changes.
///
///     log.append(batch)                  // returns at once
///     while let event = log.nextEvent() {
///       switch event {
///       case .stored(let number): …      // execute the batches up to `number`, answer their requests
///       case .failed(let first, let last, let reason): …  // refuse the requests of these batches
///       case .received(let batch): …     // another member's batch: execute it without answers
///       case .lost(let reason): …        // stop serving
///       }
///     }
///
/// All calls come from the engine's thread. A log with a thread of its own makes ``descriptor`` readable for an event.
public protocol CommitLog: AnyObject {
  /// The maximum number of batches in flight, at least 1. Appending more is a programming error.
  var window: Int { get }

  /// Whether a batch counts as stored when it is appended, and cannot fail. True only for a log that stores nothing.
  var storesNothing: Bool { get }

  /// The reason why the log has no room for requests that need more space in the state; nil if it has. Requests that free
  /// space are accepted meanwhile. The value is nil again when there is room.
  var shortage: String? { get }

  /// A file descriptor that is readable while there is an event; nil if events only occur within `append`.
  var descriptor: Int32? { get }

  /// Whether other members append to the log too. Then the revision before a batch is not known when it is sealed.
  var isShared: Bool { get }

  /// Stores a sealed batch. Returns at once, or after one write; ``nextEvent()`` reports whether it is stored, maybe later.
  /// Batches are stored in the order of their numbers.
  func append(_ batch: LogBatch)

  /// Returns the next event in the order of the log, or nil. Does not block. O(1).
  func nextEvent() -> LogEvent?

  /// Called when everything before a ``LogEvent/mark(_:)`` was executed, and nothing behind it.
  /// - Parameter makeImage: returns an image of the state at that place.
  func didReach(_ mark: UInt64, _ makeImage: () -> CatalogImage)

  /// Stores the batches in flight and ends the thread of the log. Times out after `nanoseconds`.
  func close(within nanoseconds: UInt64)
}

/// A log of one daemon has no marks, and its batches are executed at the time that they were sealed with.
extension CommitLog {
  public var isShared: Bool { false }
  public func didReach(_ mark: UInt64, _ makeImage: () -> CatalogImage) {
    assertionFailure("a log of one daemon has no marks")
  }
}

/// Stores images of the state beside a log, so that a start need not replay all of it. Called by the engine's thread.
public protocol ImageStore: AnyObject {
  /// Nanoseconds until ``workOnImage`` should be called without an event; nil if only an event can create work.
  var imagePause: UInt64? { get }

  /// Does a small part of the work on an image, after the output of a turn was written. Starts an image if one is due.
  /// - Parameters:
  ///   - number: the last executed batch; nil while one is executed in part. Then no image starts.
  ///   - steps: the filter steps of all requests so far (``Catalog/stepsTaken``).
  ///   - stateBytes: the bytes of all elements.
  ///   - isBusy: whether the turn had requests. If so, the part is smaller.
  ///   - makeImage: returns an image of the state after that batch.
  func workOnImage(
    executed number: UInt64?, steps: UInt64, stateBytes: Int, isBusy: Bool, _ makeImage: () -> CatalogImage)
}

public enum LogEvent: Sendable {
  /// All own batches up to this number are stored.
  case stored(through: UInt64)
  /// The own batch of this number, the oldest in flight, is stored, and executed at a time that its place decides.
  case ordered(UInt64, at: Instant)
  /// The own batches of these numbers, of which the first is the oldest in flight, are not stored: members execute them, if at
  /// all, as ``received(_:)``. Batches that were appended after the last of them may be stored.
  case failed(from: UInt64, through: UInt64, reason: String)
  /// A batch of another member of a replicated log. Its requests are not answered here.
  case received(LogBatch)
  /// A place in a replicated log: ``CommitLog/didReach(_:_:)`` is called with this number.
  case mark(UInt64)
  /// The log cannot determine what is stored. The daemon must stop serving.
  case lost(reason: String)
}

/// Requests that are stored together and executed at one time. Immutable.
///
/// `frames` is as received: for each request a 4-byte big-endian length and a JSON text, in order of execution.
public final class LogBatch: @unchecked Sendable {
  /// The number of the batch in its log: that of the previous batch plus 1.
  public let number: UInt64
  /// The time at which the whole batch is executed, also in replay.
  public let at: Instant
  /// The revision before the batch; nil if others were in flight when it was sealed, or other members may store some.
  public let revision: UInt64?
  /// The framed requests. Valid for the log until it reports the batch as stored or failed. The turn reuses the memory when
  /// the batch was executed or refused.
  public let frames: UnsafeRawBufferPointer
  /// Whether a request may need more space in the state. Others are stored even if little space is left.
  public let grows: Bool
  /// The owner of the memory of `frames`; nil if the caller keeps the memory alive.
  private let owner: AnyObject?

  public init(
    number: UInt64, at: Instant, revision: UInt64?, frames: UnsafeRawBufferPointer, grows: Bool = true,
    owner: AnyObject? = nil
  ) {
    (self.number, self.at, self.revision, self.frames, self.grows) = (number, at, revision, frames, grows)
    self.owner = owner
  }
}

public final class NoLog: CommitLog {
  public init() {}

  public var window: Int { 1 }
  public var storesNothing: Bool { true }
  public var shortage: String? { nil }
  public var descriptor: Int32? { nil }
  public func append(_ batch: LogBatch) { assertionFailure("nothing is appended to a log that keeps nothing") }
  public func nextEvent() -> LogEvent? { nil }
  public func close(within nanoseconds: UInt64) {}
}

/// The rules by which stored requests are executed (Protocol/storage.md, "Versions").
///
/// - 1: the first.
/// - 2: `where` and `absent` of an element, and `result`, mean something. They were ignored before.
/// - 3: operations of one request count together, and children that are listed again count; see ``UndoLog/rules``. Types in the
///   definition of a slots feed have no lone surrogates.
/// - 4: elements that are read again count, and feeds above that follow further changes of structure. Rows that views would keep are
///   counted exactly if sections are deleted, and not for rows that move. An element takes the room of the version that it replaces,
///   and its sort keys take room and have a limit. Another definition of a slots feed counts the rows that it shows, not all rows of its
///   contents.
/// - 5: an eviction is bounded for all feeds together. The digests of groups count the rows of all sections.
/// - 6: rows of managed feeds do not count, because replay does not have them (``FeedGraph/countsAll(of:)``). Equal `contents` of slots may
///   have any order, a definition of the configuration that a feed has already is its latest one, and the ranges of character classes in
///   filters are bounded.
/// - 7: `where` has no lone surrogates.
public enum ExecutionRules {
  /// Incremented when a change of the daemon makes a request that was accepted before lead to another state or revision.
  public static let current = 7
  /// The versions by which a log can be executed. A request that means something else now is refused.
  public static let known = 1...current
}
