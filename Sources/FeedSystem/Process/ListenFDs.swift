import CLinux
import Glibc

/// The sockets that a service manager passed to this process (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`).
public struct ListenFDs: Equatable, Sendable {
  /// The descriptors, from 3 up, with the names they were given ("unknown" without).
  public var sockets: [(descriptor: Int32, name: String)] {
    numbers.enumerated().map { ($0.element, names[$0.offset]) }
  }

  private var numbers: [Int32] = []
  private var names: [String] = []
  private static let first: Int32 = 3
  private static let most: Int32 = 1024

  /// What `environment` says was passed to the process `pid`; nothing when the variables are for another process, absent,
  /// or make no sense.
  public init(_ environment: Environment, pid: Int32) {
    guard let owner = environment["LISTEN_PID"].flatMap({ Int32($0) }), owner == pid else { return }
    guard let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...Self.most).contains(count) else { return }
    let given = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
    numbers = (0..<count).map { Self.first + $0 }
    names = numbers.indices.map { given.indices.contains($0) && !given[$0].isEmpty ? String(given[$0]) : "unknown" }
  }

  /// What was passed to this process. The variables are removed, so that no process started from here takes them for its
  /// own, and the descriptors are closed on exec. To be called once, before the process has other threads.
  public static func take() -> ListenFDs {
    let passed = ListenFDs(.current, pid: getpid())
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    for number in passed.numbers { _ = clinux_set_close_on_exec(number, 1) }
    return passed
  }
}
