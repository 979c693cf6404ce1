import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The reason why a stored batch cannot be replayed.
public enum ReplayError: Error, Equatable, Sendable {
  /// The batch was made at another revision than replay has reached.
  case revisionMismatch(stored: UInt64, reached: UInt64)
  /// The batch is not a sequence of frames with JSON.
  case damaged(offset: Int)
}

/// Executing the content of a log, without clients.
extension Engine {
  /// Replays a stored batch, before the first client connects. Nothing is answered.
  ///
  /// At the same time, at the same revision and under the same limits, a batch has the same effect.
  public func replay(_ batch: LogBatch) throws(ReplayError) {
    if let revision = batch.revision {
      // A start adds one revision for managed feeds, whose rows are read again. Journals of early versions do not
      // contain their commits.
      let mayCountMore = catalog.feeds.values.contains { $0.kind is ManagedKind }
      guard revision == catalog.revision || (revision > catalog.revision && mayCountMore) else {
        throw .revisionMismatch(stored: revision, reached: catalog.revision)
      }
      catalog.skip(to: revision)
    }
    try executeFrames(of: batch)
    while catalog.hasDiscarded { catalog.freeDiscarded(.max) }
  }

  /// Executes a batch of another member of a replicated log.
  func execute(received batch: LogBatch) throws(ReplayError) {
    try executeFrames(of: batch)
  }

  private func executeFrames(of batch: LogBatch) throws(ReplayError) {
    let present = time.moment
    time.moment = batch.at
    ownWork.owner = nil
    defer { time.moment = present }
    var scanner = JSONScanner(maxDepth: limits.maxDepth)
    var offset = 0
    while offset < batch.frames.count {
      let rest = UnsafeRawBufferPointer(rebasing: batch.frames[offset...])
      guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else { throw .damaged(offset: offset) }
      if let message = try? scanner.scan(payload) {
        let request: InternalRequest?
        do { request = try InternalRequest(message, limits: limits) } catch { throw .damaged(offset: offset) }
        if let request {
          execute(request, isLogged: true)
        } else {
          var id: JSONView?
          // A request that could not be decoded had no effect the first time and has none now.
          if let (method, request) = try? decode(message, id: &id) {
            performSilently(method, request.id, Parameters(object: request.params))
          }
        }
      }
      offset += Frame.headerLength + payload.count
    }
  }

  /// Sets the limits: those of the process whose journal is replayed, or the current ones after replay.
  public func use(_ limits: Limits) {
    self.limits = limits
    catalog.use(limits)
  }
}
