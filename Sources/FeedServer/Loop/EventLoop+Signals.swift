import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
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

  /// Accepts the connections that wait already, then none; says `bye` to all and continues until everything is written.
  private mutating func drain(_ cause: String) {
    link.endListening()
    service.tell(.stopping, .status("ending, \(link.count) connections are told"))
    log.write(.notice, "\(cause): ending, \(link.count) connections are told")
    turn.drain(reason: "shutdown", message: "feedd is ending; connect again when it is back.")
  }

  /// Ends: everybody has read everything, or the time is over.
  mutating func endDraining() {
    let left = link.count
    turn.closeAll(&link)
    shutdown.finish()
    closeStorage()
    if left == 0 {
      log.write(.notice, "ended")
    } else {
      log.write(.warning, "ended, \(left) connections did not read their last frame in time")
    }
    log.write(.debug, "\(cycles) turns of the loop, \(link.accepted) connections accepted")
  }
}
