import CLinux
import Glibc

/// Signals as things to read from a descriptor (signalfd) instead of interruptions.
public struct SignalQueue: ~Copyable {
  private let handle: Descriptor

  /// The signals that end a daemon: from the service manager, from a terminal.
  public static let terminate = SIGTERM
  public static let interrupt = SIGINT
  /// The signal that asks a daemon to read its configuration again.
  public static let hangUp = SIGHUP
  /// The terminal has another size.
  public static let windowChange = SIGWINCH

  /// A signal that came, and who sent it (0 for the kernel).
  public struct Arrival: Equatable, Sendable {
    public var signal: Int32
    public var pid: Int32
    public var uid: UInt32

    public init(signal: Int32, pid: Int32, uid: UInt32) {
      self.signal = signal
      self.pid = pid
      self.uid = uid
    }
  }

  /// Blocks `signals` on this thread and on those it starts from now on, and queues them here.
  /// To be made before the process has other threads.
  public init(_ signals: [Int32]) throws(SystemError) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    let code = pthread_sigmask(SIG_BLOCK, &set, nil)
    guard code == 0 else { throw SystemError(code: code, operation: "block signals") }
    let number = signalfd(-1, &set, Int32(SFD_NONBLOCK | SFD_CLOEXEC))
    guard number >= 0 else { throw .last("receive signals") }
    handle = Descriptor(owning: number)
  }

  /// To be waited on for reading.
  public var descriptor: Int32 { handle.rawValue }

  /// The next signal; nil when there is none.
  public func next() throws(SystemError) -> Arrival? {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    let count = retryingInterrupts { Glibc.read(handle.rawValue, &information, size) }
    if count == size {
      return Arrival(
        signal: Int32(bitPattern: information.ssi_signo), pid: Int32(bitPattern: information.ssi_pid),
        uid: information.ssi_uid)
    }
    if count < 0, currentErrno() != EAGAIN { throw .last("receive signals") }
    return nil
  }

  /// Makes the signals of a crash end the process at once, whatever handlers the runtime has installed: a backtrace would
  /// write the process's memory into the log and keep a dying daemon from being restarted.
  public static func endOnCrash() {
    for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
  }

  /// Lets a write beyond the limit of a file's size fail instead of ending the process.
  public static func ignoreFileSizeLimit() { signal(SIGXFSZ, SIG_IGN) }

  /// The name of the signals a daemon meets, for its log.
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
