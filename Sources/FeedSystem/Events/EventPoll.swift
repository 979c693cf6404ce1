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

  /// - Parameter batch: the maximum number of events that one wait returns. The next wait returns the others.
  public init(batch: Int = 256) throws(SystemError) {
    handle = try Descriptor("create an event queue") { epoll_create1(Int32(EPOLL_CLOEXEC)) }
    events = .allocate(capacity: max(batch, 1))
    events.initialize(repeating: epoll_event())
  }

  deinit { events.deallocate() }

  /// Adds `descriptor`. Closing it removes it. Hang-ups and errors are always reported.
  public func add(_ descriptor: Int32, _ interest: Readiness, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_ADD, descriptor, interest, token)
  }

  public func modify(_ descriptor: Int32, _ interest: Readiness, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_MOD, descriptor, interest, token)
  }

  /// Removes `descriptor`. Events that the last wait returned remain readable.
  public func remove(_ descriptor: Int32) throws(SystemError) { try control(EPOLL_CTL_DEL, descriptor, [], 0) }

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
    _ operation: Int32, _ descriptor: Int32, _ interest: Readiness, _ token: UInt64
  ) throws(SystemError) {
    var event = epoll_event()
    event.events = UInt32(interest.rawValue)
    event.data.u64 = token
    guard epoll_ctl(handle.rawValue, operation, descriptor, &event) == 0 else {
      throw .last("register a descriptor for events")
    }
  }
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

/// Kinds of readiness. They have the same values for epoll and poll.
public struct Readiness: OptionSet, Sendable {
  public let rawValue: Int16
  @inline(__always)
  public init(rawValue: Int16) { self.rawValue = rawValue }

  /// Bytes to read, a connection to accept, or the end of the stream.
  public static let readable = Readiness(rawValue: Int16(POLLIN))
  /// Room to write at least one byte, or a write that fails at once.
  public static let writable = Readiness(rawValue: Int16(POLLOUT))

  /// Waits for one of these kinds on `descriptor`. A hang-up or an error counts as all of them, because the next call
  /// reports it.
  /// - Returns: the kinds that are ready; empty after the timeout, which is nil for none.
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

/// Receives signals through a descriptor (signalfd) instead of handlers.
public struct SignalQueue: ~Copyable {
  private let handle: Descriptor

  /// SIGTERM, by which a service manager stops a daemon.
  public static let terminate = SIGTERM
  /// SIGINT, by which a terminal stops a program (Ctrl-C).
  public static let interrupt = SIGINT
  /// SIGHUP, which makes the daemon reload its configuration.
  public static let hangUp = SIGHUP
  /// SIGCHLD: a program that this process started has ended.
  public static let childEnd = SIGCHLD

  /// A received signal and the process and user that sent it; both are 0 for the kernel.
  public struct Arrival: Equatable, Sendable {
    public var signal: Int32
    public var pid: Int32
    public var uid: UInt32

    public init(signal: Int32, pid: Int32, uid: UInt32) { (self.signal, self.pid, self.uid) = (signal, pid, uid) }
  }

  /// Blocks `signals` on this thread and on the threads that it starts later, and queues them here.
  /// - Precondition: the process has no other threads yet; they would still receive the signals.
  public init(_ signals: [Int32]) throws(SystemError) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    let code = pthread_sigmask(SIG_BLOCK, &set, nil)
    guard code == 0 else { throw SystemError(code: code, operation: "block signals") }
    handle = try Descriptor("create a signal descriptor") { signalfd(-1, &set, Int32(SFD_NONBLOCK | SFD_CLOEXEC)) }
  }

  /// The descriptor to poll for reading.
  public var descriptor: Int32 { handle.rawValue }

  /// Whether this process ignores a signal, such as SIGHUP after nohup(1).
  public static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Removes and returns the next signal; nil if none is pending. Never blocks.
  public func next() throws(SystemError) -> Arrival? { try Self.next(from: handle.rawValue) }

  /// Removes and returns the next signal of the queue with this ``descriptor``, for a thread that does not own the queue.
  public static func next(from descriptor: Int32) throws(SystemError) -> Arrival? {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    let count = retryingInterrupts { Glibc.read(descriptor, &information, size) }
    if count == size {
      return Arrival(
        signal: Int32(bitPattern: information.ssi_signo), pid: Int32(bitPattern: information.ssi_pid),
        uid: information.ssi_uid)
    }
    if count < 0, currentErrno() != EAGAIN { throw .last("receive signals") }
    return nil
  }

  /// Restores the default action of the signals of a crash, so that they end the process at once.
  ///
  /// The backtrace handler of the Swift runtime would write the contents of memory to the log and delay the restart of the
  /// daemon.
  public static func endOnCrash() {
    for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
  }

  /// Makes a write beyond the file size limit fail with `EFBIG` instead of ending the process.
  public static func ignoreFileSizeLimit() { signal(SIGXFSZ, SIG_IGN) }

  /// Returns the name of a signal for messages, such as "SIGTERM"; "signal N" for the ones that the programs do not handle.
  public static func name(_ signal: Int32) -> String {
    switch signal {
    case SIGTERM: "SIGTERM"
    case SIGINT: "SIGINT"
    case SIGHUP: "SIGHUP"
    case SIGWINCH: "SIGWINCH"
    default: "signal \(signal)"
    }
  }
}

/// Delays the signals that end this process while it has files that it must remove first.
///
///     let signals = DelayedSignals()
///     try copy(isCancelled: { signals.arePending })
///     signals.deliver()  // ends the process by a signal that arrived
///
/// Signals that the process ignores, such as SIGHUP after nohup(1), stay ignored.
public final class DelayedSignals {
  private static let numbers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  private var delayed = sigset_t()
  private var former = sigset_t()

  /// Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT.
  /// - Precondition: the process has one thread; another one would still receive the signals.
  public init() {
    sigemptyset(&delayed)
    for number in Self.numbers {
      // The kernel keeps an ignored signal while it is blocked, so it must not be blocked.
      if SignalQueue.isIgnored(number) { continue }
      sigaddset(&delayed, number)
    }
    pthread_sigmask(SIG_BLOCK, &delayed, &former)
  }

  /// Whether a delayed signal has arrived.
  public var arePending: Bool {
    var pending = sigset_t()
    guard sigpending(&pending) == 0 else { return false }
    return Self.numbers.contains { sigismember(&delayed, $0) == 1 && sigismember(&pending, $0) == 1 }
  }

  /// Ends the delay. Signals that have arrived take effect before this method returns.
  public func deliver() { pthread_sigmask(SIG_SETMASK, &former, nil) }
}
