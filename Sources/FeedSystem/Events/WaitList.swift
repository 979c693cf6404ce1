import Glibc

/// A few descriptors waited for at once (poll), for clients: unlike ``EventPoll`` it takes plain files too, which are
/// always ready, so that standard input may be anything.
///
/// Filled anew for each wait.
public struct WaitList: Sendable {
  private var entries: [pollfd] = []

  public init() {}

  /// Waits for `readiness` of `descriptor` too. With nothing in it, only a hang-up or an error of the descriptor
  /// counts: of a pipe being written to, that its reader is gone.
  public mutating func add(_ descriptor: Int32, _ readiness: Readiness) {
    entries.append(pollfd(fd: descriptor, events: readiness.rawValue, revents: 0))
  }

  /// Forgets all descriptors.
  public mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

  /// Waits until one of the descriptors is ready.
  /// - Parameter deadline: when to stop waiting, in nanoseconds of ``MonotonicClock``; nil waits without limit, 0 does
  ///   not wait.
  /// - Returns: false after a timeout or a signal.
  public mutating func wait(until deadline: UInt64?) throws(SystemError) -> Bool {
    let count = poll(&entries, nfds_t(entries.count), deadline.map(MonotonicClock.milliseconds(until:)) ?? -1)
    if count < 0, currentErrno() != EINTR { throw .last("wait for descriptors") }
    if count < 0 { for index in entries.indices { entries[index].revents = 0 } }
    return count > 0
  }

  /// What the last wait found of a descriptor. A hang-up and an error count as everything that was asked for.
  public func ready(_ descriptor: Int32) -> Readiness {
    guard let entry = entries.first(where: { $0.fd == descriptor }) else { return [] }
    let asked = Readiness(rawValue: entry.events)
    return isBroken(descriptor) ? asked : asked.intersection(Readiness(rawValue: entry.revents))
  }

  /// Whether the last wait found that the other end of a descriptor is gone.
  public func isBroken(_ descriptor: Int32) -> Bool {
    entries.contains { $0.fd == descriptor && $0.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 }
  }
}

/// What to wait for on a descriptor.
public struct Readiness: OptionSet, Sendable {
  public let rawValue: Int16
  public init(rawValue: Int16) { self.rawValue = rawValue }

  /// There are bytes to read, or the peer will send no more.
  public static let readable = Readiness(rawValue: Int16(POLLIN))
  /// A write would take at least one byte, or fail at once.
  public static let writable = Readiness(rawValue: Int16(POLLOUT))

  /// Waits for one of these on `descriptor`. A peer that hung up and an error count as both, since the next call says so.
  /// - Parameter timeout: the longest wait; nil waits without limit, zero does not wait.
  /// - Returns: what is ready; empty after a timeout.
  public func wait(on descriptor: Int32, timeout: Duration? = nil) throws(SystemError) -> Readiness {
    let deadline = timeout.map { MonotonicClock.now &+ $0.clampedNanoseconds }
    while true {
      var request = pollfd(fd: descriptor, events: rawValue, revents: 0)
      let count = poll(&request, 1, deadline.map(MonotonicClock.milliseconds(until:)) ?? -1)
      if count > 0 {
        let ended = Int16(POLLHUP | POLLERR | POLLNVAL)
        return request.revents & ended != 0 ? self : intersection(Readiness(rawValue: request.revents))
      }
      if count < 0, currentErrno() != EINTR { throw .last("wait for a descriptor") }
      if let deadline, MonotonicClock.now >= deadline { return [] }
    }
  }
}
