import CLinux
import Glibc

/// A set of descriptors that one thread waits on (epoll, level-triggered), each with 64 bits of its owner's choice.
public struct EventPoll: ~Copyable {
  private let handle: Descriptor
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// - Parameter batch: the most events one wait reports; the rest stays for the next.
  public init(batch: Int = 256) throws(SystemError) {
    let number = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard number >= 0 else { throw .last("make an event queue") }
    handle = Descriptor(owning: number)
    events = .allocate(capacity: max(batch, 1))
    events.initialize(repeating: epoll_event())
  }

  deinit { events.deallocate() }

  /// Starts reporting on `descriptor`. It is forgotten by itself when it is closed.
  public func add(_ descriptor: Int32, _ interest: EventInterest, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_ADD, descriptor, interest, token)
  }

  /// Replaces interest and token of a descriptor that was added.
  public func modify(_ descriptor: Int32, _ interest: EventInterest, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_MOD, descriptor, interest, token)
  }

  /// Stops reporting on `descriptor`; events already returned by the last wait stay there.
  public func remove(_ descriptor: Int32) throws(SystemError) {
    try control(EPOLL_CTL_DEL, descriptor, [], 0)
  }

  /// Waits for events; read them with ``event(at:)`` until the next wait.
  /// - Parameter milliseconds: the longest wait; -1 waits without limit, 0 does not wait.
  /// - Returns: the number of events; 0 after a timeout or a signal.
  public func wait(milliseconds: Int32) throws(SystemError) -> Int {
    let count = epoll_wait(handle.rawValue, events.baseAddress, Int32(events.count), milliseconds)
    if count >= 0 { return Int(count) }
    if currentErrno() == EINTR { return 0 }
    throw .last("wait for events")
  }

  /// One event of the last wait; `index` is below its result.
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
    guard epoll_ctl(handle.rawValue, operation, descriptor, &event) == 0 else { throw .last("watch a descriptor") }
  }
}

/// What an ``EventPoll`` reports of a descriptor. A hang-up and an error are reported always, whatever is asked.
public struct EventInterest: OptionSet, Sendable {
  public let rawValue: UInt32
  @inline(__always)
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// There are bytes to read, a connection to accept, or an end of the stream.
  public static let readable = EventInterest(rawValue: EPOLLIN.rawValue)
  /// A write would take at least one byte.
  public static let writable = EventInterest(rawValue: EPOLLOUT.rawValue)
}

/// What an ``EventPoll`` reports of one descriptor.
public struct Event: Sendable {
  /// The 64 bits given when the descriptor was added.
  public let token: UInt64
  let flags: UInt32

  /// There are bytes to read or the stream has ended: a read will not wait.
  @inline(__always)
  public var isReadable: Bool { flags & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// A write will take something, or fail.
  @inline(__always)
  public var isWritable: Bool { flags & (EPOLLOUT.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// Both directions have ended or the connection is broken: nothing written now can be read by anybody. Bytes that the
  /// peer sent before may still be there to read.
  @inline(__always)
  public var isHungUp: Bool { flags & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }
}
