import CLinux
import Glibc

/// A file descriptor with one owner, closed when the owner goes.
public struct Descriptor: ~Copyable, Sendable {
  /// The number the kernel knows it by; valid as long as this value lives.
  public let rawValue: Int32

  /// Takes over `rawValue`, which must be open and owned by nobody else.
  public init(owning rawValue: Int32) { self.rawValue = rawValue }

  /// Another number for what is behind `number`, closed on exec.
  public init(duplicating number: Int32) throws(SystemError) {
    let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
    guard copy >= 0 else { throw .last("duplicate a descriptor") }
    self.init(owning: copy)
  }

  deinit { _ = Glibc.close(rawValue) }

  /// Gives the number to the caller, who closes it from now on.
  public consuming func release() -> Int32 {
    let number = rawValue
    discard self
    return number
  }

  /// Makes reads and writes return at once instead of waiting, or the reverse.
  public func setNonblocking(_ on: Bool) throws(SystemError) {
    guard clinux_set_nonblocking(rawValue, on ? 1 : 0) == 0 else { throw .last("change the mode of a descriptor") }
  }
}

/// The calling thread's `errno`; its own function so that no other call comes between the failure and the reading.
@inline(__always)
func currentErrno() -> Int32 { errno }

/// Repeats a system call while a signal interrupts it, and returns its last result.
@inline(__always)
func retryingInterrupts<Result: FixedWidthInteger & SignedInteger>(_ call: () -> Result) -> Result {
  while true {
    let result = call()
    if result != -1 || errno != EINTR { return result }
  }
}

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
