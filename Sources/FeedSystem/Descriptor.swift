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
  /// - Parameter operation: the words after "cannot" in an error.
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

  /// Reads the bytes of a file from an offset on. Returns their number, which is less than asked for only at the end of the file.
  static func read(
    _ number: Int32, _ space: UnsafeMutableRawBufferPointer, at offset: Int, _ path: String
  ) throws(SystemError) -> Int {
    var done = 0
    while done < space.count {
      let count = retryingInterrupts {
        pread(number, space.baseAddress.map { $0 + done }, space.count - done, off_t(offset + done))
      }
      guard count >= 0 else { throw .last("read", path) }
      if count == 0 { break }
      done += count
    }
    return done
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
  /// - Parameter operation: the words after "cannot" in an error.
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

  /// Opens the terminal of the descriptor `number` again, so that writes to it never block, while other programs that have it open
  /// notice nothing; nil if it is not a terminal.
  public init?(nonblockingTerminal number: Int32) {
    guard isatty(number) == 1 else { return nil }
    let own = retryingInterrupts { clinux_open("/proc/self/fd/\(number)", O_WRONLY | O_NONBLOCK | O_NOCTTY, 0) }
    guard own >= 0 else { return nil }
    self.init(owning: own)
  }

  /// Writes as much of the text as there is room for, to a nonblocking descriptor.
  public func writeAtOnce(_ text: String) {
    var text = text
    _ = text.withUTF8 { bytes in retryingInterrupts { Glibc.write(rawValue, bytes.baseAddress, bytes.count) } }
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
  public var isMissing: Bool { code == ENOENT || code == ENOTDIR }
}

/// Unbuffered reads and writes of the standard streams.
public enum StandardStreams {
  public static let input: Int32 = 0
  public static let output: Int32 = 1
  public static let error: Int32 = 2

  /// Writes all of the bytes. Waits for room, also if the descriptor is nonblocking.
  /// - Throws: `EPIPE` if the reader has closed the pipe; see ``ignoreBrokenPipes()``.
  public static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
    try Descriptor.writeAll(bytes, to: descriptor, writing(to: descriptor))
  }

  private static func writing(to descriptor: Int32) -> String {
    "write to standard \(descriptor == error ? "error" : "output")"
  }

  /// Writes some of the bytes to standard output, without waiting for its reader.
  /// - Returns: the number of bytes; 0 if there is no room until `deadline`, the time of ``MonotonicClock``.
  /// - Throws: `EPIPE` if the reader has closed the pipe.
  public static func writeSome(_ bytes: UnsafeRawBufferPointer, until deadline: UInt64) throws(SystemError) -> Int {
    var list = WaitList()
    list.add(output, .writable)
    guard try list.wait(until: deadline) else { return 0 }
    // A pipe that is ready has room for this many bytes, so a blocking descriptor takes them at once.
    let count = retryingInterrupts { Glibc.write(output, bytes.baseAddress, min(bytes.count, Int(PIPE_BUF))) }
    if count < 0, currentErrno() == EAGAIN { return 0 }
    guard count >= 0 else { throw .last("write to standard output") }
    return count
  }

  /// Writes the UTF-8 of a text; see ``writeAll(_:to:)``.
  public static func writeAll(_ text: String, to descriptor: Int32) throws(SystemError) {
    try Descriptor.writeAll(Array(text.utf8)[...], to: descriptor, writing(to: descriptor))
  }

  /// Reads the available bytes, after waiting for at least one.
  /// - Parameter deadline: the time of ``MonotonicClock`` at which to stop, even if bytes are available; nil for no limit.
  /// - Returns: the number of bytes; 0 at the end of the stream.
  /// - Throws: `ETIMEDOUT` at the deadline.
  public static func read(
    into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32 = input, until deadline: UInt64? = nil
  ) throws(SystemError) -> Int {
    try Descriptor.readSome(into: buffer, from: descriptor, until: deadline, "read from standard input")
  }

  /// Opens `/dev/null` in place of each standard stream that is closed, so that no file or socket that is opened later
  /// gets its number. Reading or writing the stream fails with `EBADF`. Call it before anything is opened.
  public static func occupyClosed() {
    for stream in [input, output, error] where fcntl(stream, F_GETFD) == -1 {
      // open(2) returns the lowest free number, which is that of the stream.
      _ = clinux_open("/dev/null", stream == input ? O_WRONLY : O_RDONLY, 0)
    }
  }

  /// Makes a write to a closed pipe fail with `EPIPE` instead of ending the process with SIGPIPE.
  public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
}

/// The bytes that were written to a descriptor and that its reader has not taken.
public enum UnreadBytes: Equatable, Sendable {
  /// At most this many. For a pipe it is the exact number, also after its reader has closed it.
  case atMost(Int)
  /// The peer has closed the socket. Unread bytes are discarded, and their number is lost.
  case lost
  /// The descriptor has no reader that takes bytes: it is a file, a terminal or a device.
  case none

  /// Returns those of a descriptor at this moment.
  public static func of(_ descriptor: Int32) -> UnreadBytes {
    let count = clinux_unread(descriptor)
    return count >= 0 ? .atMost(Int(count)) : count == CLINUX_LOST ? .lost : .none
  }
}

public struct Terminal: Equatable, Sendable {
  public var isTerminal: Bool
  /// The number of columns, from `$COLUMNS` or the terminal; otherwise ``defaultColumns``.
  public var columns: Int
  /// The number of rows; nil if the terminal does not report it.
  public var rows: Int?
  /// Whether to use colours: it is a terminal, `TERM` is set and not `dumb`, and `NO_COLOR` is not set.
  public var allowsColor: Bool
  /// Whether the cursor can be moved: it is a terminal, and `TERM` is set and not `dumb`.
  public var canRedraw: Bool

  public static let defaultColumns = 80
  /// A larger `COLUMNS` means as much.
  private static let mostColumns = 10_000

  /// Reads the present properties of `descriptor`. The size can change: then SIGWINCH arrives.
  public init(descriptor: Int32, environment: Environment) {
    isTerminal = isatty(descriptor) == 1
    var width: Int32 = 0
    var height: Int32 = 0
    let known = isTerminal && clinux_window_size(descriptor, &width, &height) == 0
    rows = known && height > 0 ? Int(height) : nil
    let measured = known && width > 0 ? Int(width) : Terminal.defaultColumns
    let wanted = environment.nonEmpty("COLUMNS").flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    columns = min(wanted ?? measured, Terminal.mostColumns)
    let isDumb = environment.nonEmpty("TERM") == nil || environment["TERM"] == "dumb"
    canRedraw = isTerminal && !isDumb
    allowsColor = canRedraw && environment.nonEmpty("NO_COLOR") == nil
  }
}
