import Glibc

/// A few descriptors to wait on at once (poll), for clients.
///
/// Unlike ``EventPoll`` it accepts regular files, which are always ready, so standard input may be a file. The list is
/// filled again for each wait.
public struct WaitList: Sendable {
  private var entries: [pollfd] = []

  public init() {}

  /// Adds a descriptor. If `readiness` is empty, only a hang-up or an error of the descriptor ends the wait; for the
  /// writing end of a pipe, that is the closing of the reading end.
  public mutating func add(_ descriptor: Int32, _ readiness: Readiness) {
    entries.append(pollfd(fd: descriptor, events: readiness.rawValue, revents: 0))
  }

  /// Removes all descriptors.
  public mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

  /// Waits until one of the descriptors is ready. O(descriptors).
  /// - Parameter deadline: the time of ``MonotonicClock`` at which to stop waiting, in nanoseconds; nil for no limit, 0 to
  ///   return at once.
  /// - Returns: whether a descriptor is ready; false after a timeout or a signal.
  public mutating func wait(until deadline: UInt64?) throws(SystemError) -> Bool {
    let count = poll(&entries, nfds_t(entries.count), deadline.map(MonotonicClock.milliseconds(until:)) ?? -1)
    if count < 0, currentErrno() != EINTR { throw .last("wait for descriptors") }
    if count < 0 { for index in entries.indices { entries[index].revents = 0 } }
    return count > 0
  }

  /// The readiness of a descriptor after the last wait. After a hang-up or an error it is the requested readiness.
  public func ready(_ descriptor: Int32) -> Readiness {
    guard let entry = entries.first(where: { $0.fd == descriptor }) else { return [] }
    let asked = Readiness(rawValue: entry.events)
    return isBroken(descriptor) ? asked : asked.intersection(Readiness(rawValue: entry.revents))
  }

  /// Whether the last wait found a hang-up or an error of a descriptor.
  public func isBroken(_ descriptor: Int32) -> Bool {
    entries.contains { $0.fd == descriptor && $0.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 }
  }
}

/// The kinds of readiness of a descriptor.
public struct Readiness: OptionSet, Sendable {
  public let rawValue: Int16
  public init(rawValue: Int16) { self.rawValue = rawValue }

  /// Bytes to read, or the end of the stream.
  public static let readable = Readiness(rawValue: Int16(POLLIN))
  /// Room to write at least one byte, or a write that fails at once.
  public static let writable = Readiness(rawValue: Int16(POLLOUT))

  /// Waits for one of these kinds on `descriptor`. A hang-up or an error counts as all of them, because the next call
  /// reports it.
  /// - Parameter timeout: nil for none, zero to return at once.
  /// - Returns: the kinds that are ready; empty after a timeout.
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
