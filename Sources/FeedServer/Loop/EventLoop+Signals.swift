import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Connections that can wait in the socket's queue.
  private static let longestQueue = 4096

  /// Does what the signals that came ask for.
  mutating func takeSignals() {
    do throws(SystemError) {
      while let arrival = try signals.next() { take(arrival) }
    } catch {
      log.write(.error, "\(error)")
    }
  }

  private mutating func take(_ arrival: SignalQueue.Arrival) {
    let name = SignalQueue.name(arrival.signal)
    let sender = arrival.pid == 0 ? "" : " from pid \(arrival.pid) (uid \(arrival.uid))"
    if arrival.signal == SignalQueue.hangUp {
      reload("\(name)\(sender)")
    } else if phase == .serving {
      drain("\(name)\(sender)")
    } else {
      log.write(.notice, "\(name)\(sender) again: ending at once")
      phase = .draining(until: now)
    }
  }

  /// Takes the connections that wait already, then no more; says `bye` to all and goes on until everything is written.
  private mutating func drain(_ cause: String) {
    acceptConnections(atMost: Self.longestQueue)
    tell(.stopping, .status("ending, \(connections.count) connections are told"))
    log.write(.notice, "\(cause): ending, \(connections.count) connections are told")
    listener = nil
    acceptanceResumesAt = nil
    phase = .draining(until: now.adding(nanoseconds: drainTimeout.clampedNanoseconds))
    engine.shutDown(reason: "shutdown", message: "feedd is ending; connect again when it is back.", now: now)
  }

  /// The end: everybody has read everything, or the time is up.
  mutating func endDraining() {
    let left = connections.open
    for slot in left { close(slot) }
    phase = .over
    store?.close { engine.catalog.makeImage() }
    if left.isEmpty {
      log.write(.notice, "ended")
    } else {
      log.write(.warning, "ended, \(left.count) connections did not read their last frame in time")
    }
    log.write(.debug, "\(turns) turns of the loop, \(accepted) connections accepted")
  }
}
