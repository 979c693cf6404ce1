import CLinux
import Glibc

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

    public init(signal: Int32, pid: Int32, uid: UInt32) {
      (self.signal, self.pid, self.uid) = (signal, pid, uid)
    }
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
