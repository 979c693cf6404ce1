import FeedModel

/// The requests of one turn that may change something, to be stored before they are executed.
///
/// Executing them again at the same time, on the state of the same revision and under the same limits, does the same again.
public struct JournalBatch {
  /// The daemon's revision before the batch.
  public let revision: UInt64
  /// The moment at which all of the batch is executed.
  public let at: Instant
  /// The frames, one after another, in order of execution: a 4-byte big-endian length and JSON each. Valid until the next
  /// turn begins.
  public let requests: UnsafeRawBufferPointer

  public init(revision: UInt64, at: Instant, requests: UnsafeRawBufferPointer) {
    self.revision = revision
    self.at = at
    self.requests = requests
  }
}

/// Why a stored batch cannot be executed again.
public enum ReplayError: Error, Equatable, Sendable {
  /// The batch was made on another revision than the one that replay has come to.
  case revisionMismatch(stored: UInt64, reached: UInt64)
  /// The batch is not a row of frames of JSON.
  case damaged(offset: Int)
}
