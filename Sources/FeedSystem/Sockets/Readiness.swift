import Glibc

/// What to wait for on a descriptor.
public struct Readiness: OptionSet, Sendable {
  public let rawValue: Int16
  public init(rawValue: Int16) { self.rawValue = rawValue }

  /// There are bytes to read, or the peer will send no more.
  public static let readable = Readiness(rawValue: Int16(POLLIN))
  /// A write would take at least one byte, or fail at once.
  public static let writable = Readiness(rawValue: Int16(POLLOUT))

  /// Waits for one of these on `descriptor`. A peer that hung up and an error count as both, since the next call says so.
  /// - Parameter timeout: the longest wait; nil waits for ever, zero only looks.
  /// - Returns: what is ready; empty when the time was up.
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
