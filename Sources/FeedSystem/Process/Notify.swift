import CLinux
import Glibc

/// The service manager's ear: `sd_notify` by the plain protocol, one datagram a message.
public struct Notify: Sendable {
  /// Where to, as `NOTIFY_SOCKET` says: a path, or `@` and a name of the abstract space. nil: nobody listens.
  public let socketName: String?
  /// How often the manager wants to hear that the process is alive; nil when it does not.
  public let watchdogInterval: Duration?

  /// - Parameter pid: this process; a watchdog meant for another one is not answered.
  public init(_ environment: Environment, pid: Int32) {
    let name = environment.nonEmpty("NOTIFY_SOCKET")
    socketName = name.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
    let owner = environment.nonEmpty("WATCHDOG_PID").flatMap { Int32($0) }
    let period = environment.nonEmpty("WATCHDOG_USEC").flatMap { UInt32($0) } ?? 0
    watchdogInterval = period > 0 && (owner ?? pid) == pid ? .microseconds(Int64(period)) : nil
  }

  /// What the manager is told.
  public enum Message: Equatable, Sendable {
    /// The service works: it listens.
    case ready
    /// It is ending.
    case stopping
    /// It is reading its configuration again; ``ready`` follows.
    case reloading
    /// It is alive.
    case watchdog
    /// It needs so much longer to start or to end.
    case extendTimeout(Duration)
    /// A line for `systemctl status`.
    case status(String)
    /// Which process the service is.
    case mainPID(Int32)

    var line: String {
      switch self {
      case .ready: "READY=1"
      case .stopping: "STOPPING=1"
      case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.now / 1000)"
      case .watchdog: "WATCHDOG=1"
      case .extendTimeout(let time): "EXTEND_TIMEOUT_USEC=\(time.clampedNanoseconds / 1000)"
      case .status(let text): "STATUS=\(String(text.map { $0.isNewline ? " " : $0 }))"
      case .mainPID(let pid): "MAINPID=\(pid)"
      }
    }
  }

  /// Sends the messages as one datagram; does nothing without a manager. Never waits.
  public func send(_ messages: Message...) throws(SystemError) { try send(messages) }

  /// Sends the messages as one datagram; see ``send(_:)-(Message...)``.
  public func send(_ messages: [Message]) throws(SystemError) {
    guard let socketName else { return }
    let address = try SocketAddress(notify: socketName)
    let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw .last("make a socket for", socketName) }
    let handle = Descriptor(owning: number)
    let text = messages.map(\.line).joined(separator: "\n")
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    let sent = address.withPointer { pointer, length in
      retryingInterrupts { sendto(handle.rawValue, text, text.utf8.count, flags, pointer, length) }
    }
    guard sent >= 0 else { throw .last("notify the service manager at", socketName) }
  }
}
