import FeedModel

/// A commit log over a store that writes where it is called: a batch is stored when `append` returns.
public final class StoreLog: CommitLog {
  private let store: Store
  private var event: LogEvent?

  public init(_ store: Store) {
    self.store = store
  }

  public var window: Int { 1 }
  public var storesAtOnce: Bool { false }
  public var descriptor: Int32? { nil }

  public func append(_ batch: LogBatch) {
    assert(event == nil, "the event of the batch before was not taken")
    do throws(StorageError) {
      guard let revision = batch.revision else { preconditionFailure("another batch was in flight") }
      try store.append(revision: revision, at: batch.at.nanoseconds, requests: batch.frames)
      event = .stored(through: batch.number)
    } catch {
      event = .failed(from: batch.number, reason: error.description)
    }
  }

  public func nextEvent() -> LogEvent? {
    defer { event = nil }
    return event
  }

  public func release(through number: UInt64) {}
  public func close(deadline: Instant) {}
}
