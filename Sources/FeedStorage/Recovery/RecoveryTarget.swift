import FeedModel

/// What is filled from the store before the first client connects: the daemon's engine, or one made only to check.
public protocol RecoveryTarget: AnyObject {
  var catalog: Catalog { get }
  /// What follows was executed under these limits.
  func adopt(_ limits: Limits)
  /// Executes a batch again.
  func replay(_ batch: StoredBatch) throws(ReplayRefusal)
  /// Recovery goes on; called from time to time.
  func didRecover(_ progress: RecoveryProgress)
}

/// A batch of the journal.
public struct StoredBatch {
  /// Its last row.
  public let sequence: Int64
  /// The daemon's revision before the batch.
  public let revision: UInt64
  /// The moment at which it is executed, in nanoseconds.
  public let at: UInt64
  /// The requests as they were given to `Store.append`; valid during the call only.
  public let requests: UnsafeRawBufferPointer
}

/// Why a batch cannot be executed again.
public struct ReplayRefusal: Error, Equatable, Sendable {
  public let reason: String

  public init(_ reason: String) {
    self.reason = reason
  }
}

/// How far recovery is, and in the end what it found.
public struct RecoveryProgress: Equatable, Sendable {
  /// The revision of the image; 0 without one.
  public var imageRevision: UInt64 = 0
  public var feeds = 0
  public var elements = 0
  public var batches = 0
  public var batchBytes = 0
  /// The newest moment that was stored.
  public var newestMoment: UInt64 = 0
}
