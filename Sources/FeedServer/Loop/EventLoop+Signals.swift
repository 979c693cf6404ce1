import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Connections that can wait in the socket's queue.
  private static let longestQueue = 4096

  /// Does what the signals that came ask for.
  mutating func takeSignals() {
    do throws(SystemError) {
      while let request = try signals.next() { take(request) }
    } catch {
      log.write(.error, "\(error)")
    }
  }

  private mutating func take(_ request: Signals.Request) {
    switch request {
    case .reload(let cause): reload(cause)
    case .end(let cause):
      guard shutdown.request(cause, now: now) else {
        return log.write(.notice, "\(cause) again: ending at once")
      }
      if let cause = shutdown.begin(now: now) { drain(cause) }
    }
  }

  /// Takes the connections that wait already, then no more; says `bye` to all and goes on until everything is written.
  private mutating func drain(_ cause: String) {
    acceptConnections(atMost: Self.longestQueue)
    service.tell(.stopping, .status("ending, \(connections.count) connections are told"))
    log.write(.notice, "\(cause): ending, \(connections.count) connections are told")
    listener = nil
    acceptanceResumesAt = nil
    engine.shutDown(reason: "shutdown", message: "feedd is ending; connect again when it is back.", now: now)
  }

  /// The end: everybody has read everything, or the time is up.
  mutating func endDraining() {
    let left = connections.open
    for slot in left { close(slot) }
    shutdown.finish()
    store?.close { engine.catalog.makeImage() }
    if left.isEmpty {
      log.write(.notice, "ended")
    } else {
      log.write(.warning, "ended, \(left.count) connections did not read their last frame in time")
    }
    log.write(.debug, "\(turns) turns of the loop, \(accepted) connections accepted")
  }
}
