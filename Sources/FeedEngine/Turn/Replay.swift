import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Why a stored batch cannot be executed again.
public enum ReplayError: Error, Equatable, Sendable {
  /// The batch was made on another revision than the one that replay has come to.
  case revisionMismatch(stored: UInt64, reached: UInt64)
  /// The batch is not a sequence of frames of JSON.
  case damaged(offset: Int)
}

/// Executing what a log contains, without clients.
extension Engine {
  /// Executes a stored batch again, before the first client connects. Nobody is answered.
  ///
  /// Executed at the same moment, on the state of the same revision and under the same limits, a batch does the same again.
  public func replay(_ batch: LogBatch) throws(ReplayError) {
    if let revision = batch.revision {
      // A start counts one revision more for managed feeds, whose rows are read again, and journals of early versions do not
      // contain their commits at all.
      let mayCountMore = catalog.feeds.values.contains { $0.kind is ManagedKind }
      guard revision == catalog.revision || (revision > catalog.revision && mayCountMore) else {
        throw .revisionMismatch(stored: revision, reached: catalog.revision)
      }
      catalog.skip(to: revision)
    }
    try executeFrames(of: batch)
  }

  /// Executes a batch of another member of a replicated log.
  func execute(received batch: LogBatch) throws(ReplayError) {
    try executeFrames(of: batch)
  }

  private func executeFrames(of batch: LogBatch) throws(ReplayError) {
    let present = time.moment
    time.moment = batch.at
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
          // What could not be decoded did nothing at first, and does nothing again.
          if let (method, request) = try? decode(message, id: &id) {
            performSilently(method, request.id, Parameters(object: request.params))
          }
        }
      }
      offset += Frame.headerLength + payload.count
    }
  }

  /// Continues under other limits: those of the run whose journal is replayed, or of this run when replay is over.
  public func adopt(_ limits: Limits) {
    self.limits = limits
    catalog.adopt(limits)
  }
}
