import CLinux
import Glibc

/// A set of descriptors that one thread waits on (epoll, level-triggered).
///
/// Each descriptor has a 64-bit token, which its events carry.
///
///     let poll = try EventPoll()
///     try poll.add(socket, .readable, token: 1)
///     for index in 0..<(try poll.wait(milliseconds: -1)) { handle(poll.event(at: index)) }
public struct EventPoll: ~Copyable {
  private let handle: Descriptor
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// Creates an empty set.
  /// - Parameter batch: the maximum number of events that one wait returns. The next wait returns the others.
  public init(batch: Int = 256) throws(SystemError) {
    handle = try Descriptor("create an event queue") { epoll_create1(Int32(EPOLL_CLOEXEC)) }
    events = .allocate(capacity: max(batch, 1))
    events.initialize(repeating: epoll_event())
  }

  deinit { events.deallocate() }

  /// Adds `descriptor`. Closing it removes it.
  public func add(_ descriptor: Int32, _ interest: EventInterest, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_ADD, descriptor, interest, token)
  }

  public func modify(_ descriptor: Int32, _ interest: EventInterest, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_MOD, descriptor, interest, token)
  }

  /// Removes `descriptor`. Events that the last wait returned remain readable.
  public func remove(_ descriptor: Int32) throws(SystemError) {
    try control(EPOLL_CTL_DEL, descriptor, [], 0)
  }

  /// Waits for events, which ``event(at:)`` returns until the next wait.
  /// - Parameter milliseconds: the timeout; -1 for none, 0 to return at once.
  /// - Returns: the number of events; 0 after a timeout or a signal.
  public func wait(milliseconds: Int32) throws(SystemError) -> Int {
    let count = epoll_wait(handle.rawValue, events.baseAddress, Int32(events.count), milliseconds)
    if count >= 0 { return Int(count) }
    if currentErrno() == EINTR { return 0 }
    throw .last("wait for events")
  }

  /// Returns one event of the last wait.
  /// - Precondition: `index` is less than the result of that wait.
  @inline(__always)
  public func event(at index: Int) -> Event {
    let event = events[index]
    return Event(token: event.data.u64, flags: event.events)
  }

  private func control(
    _ operation: Int32, _ descriptor: Int32, _ interest: EventInterest, _ token: UInt64
  ) throws(SystemError) {
    var event = epoll_event()
    event.events = interest.rawValue
    event.data.u64 = token
    guard epoll_ctl(handle.rawValue, operation, descriptor, &event) == 0 else {
      throw .last("register a descriptor for events")
    }
  }
}

/// The kinds of readiness that an ``EventPoll`` reports. Hang-ups and errors are always reported.
public struct EventInterest: OptionSet, Sendable {
  public let rawValue: UInt32
  @inline(__always)
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Bytes to read, a connection to accept, or the end of the stream.
  public static let readable = EventInterest(rawValue: EPOLLIN.rawValue)
  /// Room to write at least one byte.
  public static let writable = EventInterest(rawValue: EPOLLOUT.rawValue)
}

public struct Event: Sendable {
  public let token: UInt64
  let flags: UInt32

  /// Whether a read returns at once, with bytes, the end of the stream or an error.
  @inline(__always)
  public var isReadable: Bool { flags & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// Whether a write returns at once: it accepts at least one byte, or fails.
  @inline(__always)
  public var isWritable: Bool { flags & (EPOLLOUT.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// Whether both directions have ended or the connection failed. The peer can receive nothing more. Bytes that it sent
  /// before may still be readable.
  @inline(__always)
  public var isHungUp: Bool { flags & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }
}

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
