import CLinux
import Glibc

/// The sockets that a service manager passed to this process (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`).
public struct ListenFDs: Equatable, Sendable {
  /// The descriptors, numbered from 3, and their names; "unknown" for a socket without a name.
  public var sockets: [(descriptor: Int32, name: String)] {
    numbers.enumerated().map { ($0.element, names[$0.offset]) }
  }

  private var numbers: [Int32] = []
  private var names: [String] = []
  private static let first: Int32 = 3
  private static let most: Int32 = 1024

  /// Reads the sockets of the process `pid` from the variables. There are none if the variables are absent, malformed or
  /// meant for another process.
  public init(_ environment: Environment, pid: Int32) {
    guard let owner = environment["LISTEN_PID"].flatMap({ Int32($0) }), owner == pid else { return }
    guard let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...Self.most).contains(count) else { return }
    let given = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
    numbers = (0..<count).map { Self.first + $0 }
    names = numbers.indices.map { given.indices.contains($0) && !given[$0].isEmpty ? String(given[$0]) : "unknown" }
  }

  /// Returns the sockets of this process. Removes the variables and marks the descriptors as closed on exec, so that child
  /// processes do not use them. Call it once.
  /// - Precondition: the process has no other threads yet.
  public static func take() -> ListenFDs {
    let passed = ListenFDs(.current, pid: getpid())
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    for number in passed.numbers { _ = clinux_set_close_on_exec(number, 1) }
    return passed
  }
}

/// Sends status notifications to the service manager (the protocol of sd_notify(3), one datagram for each call).
public struct Notify: Sendable {
  /// The value of `NOTIFY_SOCKET`: a path, or `@` and a name in the abstract namespace; nil if there is no manager.
  public let socketName: String?
  /// The maximum interval between ``Message/watchdog`` messages; nil if the manager does not expect them.
  public let watchdogInterval: Duration?

  /// Reads the variables of the service manager.
  /// - Parameter pid: this process. `WATCHDOG_PID` can name another one.
  public init(_ environment: Environment, pid: Int32) {
    let name = environment.nonEmpty("NOTIFY_SOCKET")
    socketName = name.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
    let owner = environment.nonEmpty("WATCHDOG_PID").flatMap { Int32($0) }
    let period = environment.nonEmpty("WATCHDOG_USEC").flatMap { UInt64($0) } ?? 0
    watchdogInterval = period > 0 && (owner ?? pid) == pid ? .microseconds(Int64(clamping: period)) : nil
  }

  /// A notification.
  public enum Message: Equatable, Sendable {
    case ready
    case stopping
    /// The service is reloading its configuration. ``ready`` follows.
    case reloading
    /// The service is alive.
    case watchdog
    /// Starting or stopping takes this much longer.
    case extendTimeout(Duration)
    /// The line that `systemctl status` shows.
    case status(String)
    /// The pid of the main process of the service.
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

  /// Sends the messages as one datagram. Does nothing without a manager. Never blocks.
  public func send(_ messages: Message...) throws(SystemError) { try send(messages) }

  public func send(_ messages: [Message]) throws(SystemError) {
    guard let socketName else { return }
    let address = try SocketAddress(notify: socketName)
    let handle = try Descriptor("create a socket for", socketName) {
      socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
    let text = messages.map(\.line).joined(separator: "\n")
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    let sent = address.withPointer { pointer, length in
      retryingInterrupts { sendto(handle.rawValue, text, text.utf8.count, flags, pointer, length) }
    }
    guard sent >= 0 else { throw .last("notify the service manager at", socketName) }
  }
}

/// Detects whether standard error is connected to the journal, which accepts a priority before each line.
public enum JournalStream {
  /// Whether `$JOURNAL_STREAM`, a device and an inode, identifies the file of the descriptor. A program whose standard error
  /// was redirected still has the variable.
  public static func isConnected(to descriptor: Int32, _ environment: Environment) -> Bool {
    guard let text = environment.nonEmpty("JOURNAL_STREAM"), let file = FileIdentity(of: descriptor) else {
      return false
    }
    return text == "\(file.device):\(file.inode)"
  }
}

/// The journal's socket for entries with fields (systemd.journal-fields(7)). Never blocks.
public final class JournalSocket: Sendable {
  /// Where the journal listens.
  public static let standardPath = "/run/systemd/journal/socket"

  public struct Field: Equatable, Sendable {
    /// Upper-case letters, digits and underscores.
    public let name: String
    public let value: String

    public init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
  }

  private let handle: Descriptor

  /// Connects to the journal.
  public init(_ path: String = standardPath) throws(SystemError) {
    let address = try SocketAddress(notify: path)
    handle = try Descriptor("create a socket for", path) {
      socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    }
    guard address.withPointer({ connect(handle.rawValue, $0, $1) }) == 0 else { throw .last("connect to", path) }
  }

  /// Sends an entry. Returns false if the journal does not take it now.
  /// - Precondition: the values have no newlines.
  public func send(_ fields: [Field]) -> Bool {
    assert(fields.allSatisfy { !$0.value.utf8.contains(UInt8(ascii: "\n")) }, "a newline would begin another field")
    let text = fields.map { "\($0.name)=\($0.value)\n" }.joined()
    return retryingInterrupts { Glibc.send(handle.rawValue, text, text.utf8.count, Int32(MSG_NOSIGNAL)) } >= 0
  }
}
