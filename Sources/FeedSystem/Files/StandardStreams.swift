import CLinux
import Glibc

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
