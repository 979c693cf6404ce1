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

  /// Replaces the interest and the token of an added descriptor.
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

/// One event of an ``EventPoll``.
public struct Event: Sendable {
  /// The token of the descriptor.
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
