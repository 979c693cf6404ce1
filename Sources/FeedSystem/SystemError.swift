import CLinux
import Glibc

/// A system call that failed: which, on what, why, and (when it is known) what the operator can do about it.
public struct SystemError: Error, Equatable, Sendable {
  /// The value of `errno`, for example `ENOENT`.
  public var code: Int32
  /// What was attempted, as the words after "cannot": "connect to", "bind", "read".
  public var operation: String
  /// The file or socket it was attempted on, when there is one.
  public var path: String?
  /// A sentence that says what to change, without the full stop.
  public var advice: String?

  public init(code: Int32, operation: String, path: String? = nil, advice: String? = nil) {
    self.code = code
    self.operation = operation
    self.path = path
    self.advice = advice
  }
}

extension SystemError {
  /// The error of the call that has just failed on this thread.
  static func last(_ operation: String, _ path: String? = nil) -> SystemError {
    SystemError(code: currentErrno(), operation: operation, path: path)
  }

  /// The system's words for the code, for example "No such file or directory". O(1).
  public var reason: String { String(cString: clinux_error_text(code)) }
}

extension SystemError: CustomStringConvertible {
  /// One sentence for a person: "cannot connect to /run/feedd/feedd.sock: No such file or directory; start feedd first".
  public var description: String {
    var text = "cannot \(operation)"
    if let path { text += " \(path)" }
    text += ": \(reason)"
    if let advice { text += "; \(advice)" }
    return text
  }
}

extension SystemError {
  /// Whether there is no such file.
  public var isMissing: Bool { code == ENOENT || code == ENOTDIR }
}
