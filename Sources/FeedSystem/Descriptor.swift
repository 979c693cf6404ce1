import CLinux
import Glibc

/// A file descriptor with one owner. It is closed at the end of its lifetime.
public struct Descriptor: ~Copyable, Sendable {
  /// The descriptor number. Valid while this value exists.
  public let rawValue: Int32

  /// Takes ownership of `rawValue`.
  /// - Precondition: the descriptor is open and has no other owner.
  public init(owning rawValue: Int32) { self.rawValue = rawValue }

  /// Duplicates the descriptor `number`. The copy is closed on exec.
  public init(duplicating number: Int32) throws(SystemError) {
    try self.init("duplicate a descriptor") { fcntl(number, F_DUPFD_CLOEXEC, 3) }
  }

  /// Takes ownership of the descriptor that a system call returns. An interrupted call is repeated.
  /// - Parameters:
  ///   - operation: the words after "cannot" in an error.
  ///   - path: the file in an error.
  ///   - advice: returns the next step for an `errno`.
  init(
    _ operation: String, _ path: String? = nil, advice: (Int32) -> String? = { _ in nil }, _ call: () -> Int32
  ) throws(SystemError) {
    let number = retryingInterrupts(call)
    guard number >= 0 else {
      let code = currentErrno()
      throw SystemError(code: code, operation: operation, path: path, advice: advice(code))
    }
    self.init(owning: number)
  }

  deinit { _ = Glibc.close(rawValue) }

  /// Returns the number and transfers ownership to the caller.
  public consuming func release() -> Int32 {
    let number = rawValue
    discard self
    return number
  }

  /// Reads the available bytes of the descriptor `number`, after waiting for at least one, also if the descriptor is
  /// nonblocking.
  /// - Parameters:
  ///   - deadline: the time of ``MonotonicClock`` at which to stop, even if bytes are available; nil for no limit.
  ///   - operation: the words after "cannot" in an error.
  ///   - path: the file in an error.
  /// - Returns: the number of bytes; 0 at the end of the stream.
  /// - Throws: `ETIMEDOUT` at the deadline.
  static func readSome(
    into buffer: UnsafeMutableRawBufferPointer, from number: Int32, until deadline: UInt64? = nil,
    _ operation: String, _ path: String? = nil
  ) throws(SystemError) -> Int {
    while true {
      if deadline != nil { try waitForInput(number, until: deadline, operation, path) }
      let count = retryingInterrupts { Glibc.read(number, buffer.baseAddress, buffer.count) }
      if count >= 0 { return count }
      guard currentErrno() == EAGAIN else { throw .last(operation, path) }
      try waitForInput(number, until: deadline, operation, path)
    }
  }

  private static func waitForInput(
    _ number: Int32, until deadline: UInt64?, _ operation: String, _ path: String?
  ) throws(SystemError) {
    var list = WaitList()
    list.add(number, .readable)
    repeat {
      if let deadline, MonotonicClock.now >= deadline {
        throw SystemError(code: ETIMEDOUT, operation: operation, path: path)
      }
    } while try !list.wait(until: deadline)
  }

  /// Writes all of the bytes to the descriptor `number`. Waits for room, also if the descriptor is nonblocking.
  /// - Parameters:
  ///   - operation: the words after "cannot" in an error.
  ///   - path: the file in an error.
  static func writeAll(
    _ bytes: UnsafeRawBufferPointer, to number: Int32, _ operation: String, _ path: String? = nil
  ) throws(SystemError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = retryingInterrupts { Glibc.write(number, rest.baseAddress, rest.count) }
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if currentErrno() == EAGAIN {
        // Another process that shares the descriptor has made it nonblocking.
        _ = try Readiness.writable.wait(on: number)
      } else {
        throw .last(operation, path)
      }
    }
  }

  /// Writes all of the bytes to the descriptor `number`; see the method for raw bytes.
  static func writeAll(
    _ bytes: ArraySlice<UInt8>, to number: Int32, _ operation: String, _ path: String? = nil
  ) throws(SystemError) {
    try bytes.withUnsafeBufferPointer { bytes throws(SystemError) in
      try writeAll(UnsafeRawBufferPointer(bytes), to: number, operation, path)
    }
  }

  /// Selects whether reads and writes return at once instead of blocking.
  public func setNonblocking(_ on: Bool) throws(SystemError) {
    guard clinux_set_nonblocking(rawValue, on ? 1 : 0) == 0 else { throw .last("change the mode of a descriptor") }
  }
}

/// The `errno` of this thread. Call it directly after the failed call, because any other call can change it.
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

/// The failure of a system call: the operation, its object, the reason, and the next step if one is known.
public struct SystemError: Error, Equatable, Sendable {
  /// The value of `errno`, for example `ENOENT`.
  public var code: Int32
  /// The words after "cannot" that describe the operation, such as "connect to".
  public var operation: String
  /// The file or socket of the operation, if it has one.
  public var path: String?
  /// The next step, as an imperative without a full stop.
  public var advice: String?

  public init(code: Int32, operation: String, path: String? = nil, advice: String? = nil) {
    (self.code, self.operation, self.path, self.advice) = (code, operation, path, advice)
  }
}

extension SystemError {
  /// Creates the error of the call that has just failed on this thread.
  static func last(_ operation: String, _ path: String? = nil) -> SystemError {
    SystemError(code: currentErrno(), operation: operation, path: path)
  }

  /// The description of the code by the C library, in lower case, such as "no such file or directory".
  public var reason: String {
    if code == ENOTSOCK { return "not a socket" }
    let text = String(cString: clinux_error_text(code))
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}

extension SystemError: CustomStringConvertible {
  /// One line, such as "cannot connect to /run/feedd/feedd.sock: no such file or directory; start feedd".
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
