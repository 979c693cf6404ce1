import FeedSystem
import Glibc

/// A program started by a test. It is killed when this object is deallocated.
public final class ChildProcess {
  public let pid: Int32
  public let output: PipeReader
  public let errors: PipeReader
  private var status: Int32?
  private var input: Descriptor?

  /// Ignores SIGPIPE, so that a child that ends before it reads its input does not end all tests. Children have the default
  /// action.
  private static let ignoresBrokenPipes: Void = StandardStreams.ignoreBrokenPipes()

  /// Starts a program.
  /// - Parameters:
  ///   - environment: the variables of the program. Only `PATH` is inherited.
  ///   - passing: descriptors that the program receives as 3, 4, ….
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], passing: [Int32] = []
  ) throws {
    _ = Self.ignoresBrokenPipes
    var toInput = try Pipe()
    var fromOutput = try Pipe()
    var fromErrors = try Pipe()
    let standard = [toInput.readingNumber, fromOutput.writingNumber, fromErrors.writingNumber]
    pid = try Spawner(program, arguments, environment).spawn(standard + passing)
    output = try PipeReader(fromOutput.reading.take())
    errors = try PipeReader(fromErrors.reading.take())
    input = toInput.writing.take()
  }

  deinit {
    guard status == nil else { return }
    Glibc.kill(pid, SIGKILL)
    Glibc.kill(pid, SIGCONT)
    var ignored: Int32 = 0
    waitpid(pid, &ignored, 0)
  }

  public func signal(_ number: Int32) { _ = Glibc.kill(pid, number) }

  /// Writes to the standard input of the program.
  /// - Throws: a ``SystemError`` of `EPIPE` if the program has ended or closed its input.
  public func write(_ text: String) throws {
    guard input != nil else { throw TestFailure("cannot write: the input was closed") }
    try StandardStreams.writeAll(text, to: input?.rawValue ?? -1)
  }

  public func closeInput() { input = nil }

  /// Waits until `descriptor` is readable or the process ends, and collects its standard error meanwhile.
  /// - Returns: false if the process ended and there is nothing to read.
  func isRunning(orReadable descriptor: Int32, timeout: Duration) throws -> Bool {
    while try Readiness.readable.wait(on: descriptor, timeout: .zero).isEmpty {
      if errors.isAtEnd { return false }
      guard try errors.readMore(orReadable: descriptor, timeout: timeout) else {
        throw TestFailure("timed out after \(timeout); the standard error was:\n\(errors.text)")
      }
    }
    return true
  }

  /// Waits for the end of the process, after the end of its standard error.
  /// - Returns: the exit status, or 128 plus the signal that ended it.
  public func waitForExit(timeout: Duration = testTimeout) throws -> Int32 {
    if let status { return status }
    try errors.waitForEnd(timeout: timeout)
    var raw: Int32 = 0
    guard waitpid(pid, &raw, 0) == pid else { throw TestFailure("waitpid: errno \(errno)") }
    let signal = raw & 0x7f
    let code = signal == 0 ? (raw >> 8) & 0xff : 128 + signal
    status = code
    return code
  }
}

/// Starts programs with posix_spawn, with only the given descriptors and variables and no blocked signals.
struct Spawner {
  private let program: String
  private let arguments: [String]
  private let environment: [String: String]

  init(_ program: String, _ arguments: [String], _ environment: [String: String]) {
    self.program = program
    self.arguments = arguments
    var all = environment
    if all["PATH"] == nil { all["PATH"] = Environment.current["PATH"] ?? "/usr/bin:/bin" }
    self.environment = all
  }

  /// Starts the program with `descriptors` as 0, 1, 2, …
  func spawn(_ descriptors: [Int32]) throws -> Int32 {
    // Copied to high numbers first, so that none is overwritten before it is copied to its final number.
    let sources = try descriptors.map { number in
      let copy = fcntl(number, F_DUPFD_CLOEXEC, 200)
      guard copy >= 0 else { throw TestFailure("fcntl: errno \(errno)") }
      return copy
    }
    defer { for number in sources { close(number) } }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in sources.enumerated() { posix_spawn_file_actions_adddup2(&actions, source, Int32(target)) }
    // The descriptors that the test runner inherited. Closing one that is not open has no effect.
    for number in sources.count..<64 { posix_spawn_file_actions_addclose(&actions, Int32(number)) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for signal in [SIGPIPE, SIGTERM, SIGINT, SIGHUP] { sigaddset(&defaults, signal) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let argv = ([program] + arguments).map { strdup($0) } + [nil]
    let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var pid: Int32 = 0
    let code = posix_spawnp(&pid, program, &actions, &attributes, argv, envp)
    guard code == 0 else { throw TestFailure("cannot start \(program): errno \(code)") }
    return pid
  }
}
