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
  /// Opened at the start: a watchdog message that lacks a descriptor later would cost the service its life. If it could not be
  /// opened, each call of ``send(_:)-([Message])`` tries again.
  private let sender: DatagramSender?

  /// Reads the variables of the service manager.
  /// - Parameter pid: this process. `WATCHDOG_PID` can name another one.
  public init(_ environment: Environment, pid: Int32) {
    let name = environment.nonEmpty("NOTIFY_SOCKET")
    socketName = name.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
    sender = socketName.flatMap { try? DatagramSender(to: $0) }
    let owner = environment.nonEmpty("WATCHDOG_PID").flatMap { Int32($0) }
    let period = environment.nonEmpty("WATCHDOG_USEC").flatMap { UInt64($0) } ?? 0
    watchdogInterval = period > 0 && (owner ?? pid) == pid ? .microseconds(Int64(clamping: period)) : nil
  }

  public enum Message: Equatable, Sendable {
    case ready, stopping
    /// The service is reloading its configuration. ``ready`` follows.
    case reloading
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

  /// Sends the messages as one datagram; see ``send(_:)-(Message...)``.
  public func send(_ messages: [Message]) throws(SystemError) {
    guard let socketName else { return }
    let sender = if let sender { sender } else { try DatagramSender(to: socketName) }
    guard sender.send(messages.map(\.line).joined(separator: "\n")) else {
      throw .last("notify the service manager at", socketName)
    }
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

  private let sender: DatagramSender

  /// Opens a socket for entries. The journal need not listen yet.
  public init(_ path: String = standardPath) throws(SystemError) { sender = try DatagramSender(to: path) }

  /// Sends an entry. Returns false if the journal does not take it now.
  /// - Precondition: the values have no newlines.
  public func send(_ fields: [Field]) -> Bool {
    assert(fields.allSatisfy { !$0.value.utf8.contains(UInt8(ascii: "\n")) }, "a newline would begin another field")
    return sender.send(fields.map { "\($0.name)=\($0.value)\n" }.joined())
  }
}

/// Sends datagrams to one Unix socket. Never blocks.
///
/// It is not connected, because the receiver may be stopped and listen anew at the same path.
private final class DatagramSender: Sendable {
  private let address: SocketAddress
  private let handle: Descriptor

  /// - Parameter name: a path, or `@` and a name in the abstract namespace.
  init(to name: String) throws(SystemError) {
    address = try SocketAddress(notify: name)
    handle = try Descriptor("create a socket for", name) {
      socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    }
  }

  /// Sends one datagram. Returns false with `errno` if the receiver does not take it now.
  func send(_ text: String) -> Bool {
    address.withPointer { pointer, length in
      retryingInterrupts { sendto(handle.rawValue, text, text.utf8.count, Int32(MSG_NOSIGNAL), pointer, length) }
    } >= 0
  }
}
