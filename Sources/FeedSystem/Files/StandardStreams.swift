import CLinux
import Glibc

/// Plain reads and writes of descriptors that the process was started with, without buffers of their own.
public enum StandardStreams {
  public static let input: Int32 = 0
  public static let output: Int32 = 1
  public static let error: Int32 = 2

  /// Writes all of the bytes, waiting where it must. `EPIPE` says that the reader is gone (ignore SIGPIPE to see it).
  public static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = retryingInterrupts { Glibc.write(descriptor, rest.baseAddress, rest.count) }
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if currentErrno() == EAGAIN {
        // Somebody shares the descriptor and made it nonblocking.
        _ = try Readiness.writable.wait(on: descriptor)
      } else {
        throw .last("write to standard \(descriptor == error ? "error" : "output")")
      }
    }
  }

  /// Writes all of a text; see ``writeAll(_:to:)``.
  public static func writeAll(_ text: String, to descriptor: Int32) throws(SystemError) {
    var text = text
    let result = text.withUTF8 { bytes -> SystemError? in
      do throws(SystemError) {
        try writeAll(UnsafeRawBufferPointer(bytes), to: descriptor)
        return nil
      } catch {
        return error
      }
    }
    if let result { throw result }
  }

  /// Reads what is there, waiting for at least one byte; 0 at the end.
  public static func read(
    into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32 = input
  ) throws(SystemError) -> Int {
    while true {
      let count = retryingInterrupts { Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
      if count >= 0 { return count }
      guard currentErrno() == EAGAIN else { throw .last("read from standard input") }
      _ = try Readiness.readable.wait(on: descriptor)
    }
  }

  /// Makes a write to a closed pipe fail with `EPIPE` instead of killing the process.
  public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
}

/// Two descriptors, closed on exec: what is written into one is read from the other.
public struct Pipe: ~Copyable {
  /// What is read from; nil once it was closed or given away.
  public var reading: Descriptor?
  /// What is written to; nil once it was closed or given away.
  public var writing: Descriptor?

  public init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else { throw .last("make a pipe") }
    reading = Descriptor(owning: ends[0])
    writing = Descriptor(owning: ends[1])
  }

  /// The number to read from; -1 once that end was closed or given away.
  public var readingNumber: Int32 { Self.number(reading) }

  /// The number to write to; -1 once that end was closed or given away.
  public var writingNumber: Int32 { Self.number(writing) }

  private static func number(_ end: borrowing Descriptor?) -> Int32 {
    switch end {
    case .some(let descriptor): descriptor.rawValue
    case .none: -1
    }
  }
}

/// Whether what is written on standard error goes straight to the journal, which takes a priority before each line.
public enum JournalStream {
  /// Compares `$JOURNAL_STREAM` (device and inode, set by the service manager) with the descriptor: a program whose standard
  /// error was redirected elsewhere keeps the variable but does not write to the journal.
  public static func isConnected(to descriptor: Int32, _ environment: Environment) -> Bool {
    guard let text = environment.nonEmpty("JOURNAL_STREAM"), let file = FileIdentity(of: descriptor) else {
      return false
    }
    return text == "\(file.device):\(file.inode)"
  }
}

/// What a program may assume of the terminal, if there is one, behind one of its standard descriptors.
public struct Terminal: Equatable, Sendable {
  /// Whether the descriptor is a terminal at all.
  public var isTerminal: Bool
  /// Columns, from `$COLUMNS` or the terminal; ``defaultColumns`` when neither says.
  public var columns: Int
  /// Rows, from the terminal; nil when it does not say.
  public var rows: Int?
  /// Whether colours and other escape sequences are welcome: a terminal, no `NO_COLOR`, and not a `dumb` one.
  public var allowsColor: Bool
  /// Whether the cursor can be moved (a terminal that is not `dumb`); colour aside.
  public var canRedraw: Bool

  public static let defaultColumns = 80

  /// Looks at `descriptor` (1 is standard output) now; look again after SIGWINCH. Two system calls at most.
  public init(descriptor: Int32, environment: Environment) {
    isTerminal = isatty(descriptor) == 1
    var width: Int32 = 0
    var height: Int32 = 0
    let known = isTerminal && clinux_window_size(descriptor, &width, &height) == 0
    rows = known && height > 0 ? Int(height) : nil
    let measured = known && width > 0 ? Int(width) : Terminal.defaultColumns
    columns = environment.nonEmpty("COLUMNS").flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } ?? measured
    let isDumb = environment.nonEmpty("TERM") == nil || environment["TERM"] == "dumb"
    canRedraw = isTerminal && !isDumb
    allowsColor = canRedraw && environment.nonEmpty("NO_COLOR") == nil
  }
}
