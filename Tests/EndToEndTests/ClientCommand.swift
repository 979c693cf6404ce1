import FeedSystem
import Glibc
import TestSupport

/// The program `feedclient` with the socket of a daemon.
struct ClientCommand {
  let socket: String
  var environment: [String: String] = [:]

  /// Keeps the daemon running as long as this value exists.
  private var daemon: DaemonProcess?

  init(_ daemon: DaemonProcess) {
    socket = daemon.socketPath
    self.daemon = daemon
  }

  init(socket: String) { self.socket = socket }

  /// The exit status and the output of a run.
  struct Outcome: Equatable {
    var code: Int32
    var output: String
    var errors: String

    /// The lines of standard output.
    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// The JSON value on standard output.
    var json: JSONValue { get throws { try JSONValue(output) } }
  }

  private var variables: [String: String] {
    environment.merging(["FEEDD_SOCKET": socket]) { given, _ in given }
  }

  /// Starts a command.
  func start(_ arguments: String...) throws -> ChildProcess { try start(arguments) }

  func start(_ arguments: [String], passing: [Int32] = []) throws -> ChildProcess {
    return try ChildProcess(BuildProducts.program("feedclient"), arguments, environment: variables, passing: passing)
  }

  /// Starts a shell script, where `$0` is `feedclient`.
  func startShell(_ script: String, passing: [Int32] = []) throws -> ChildProcess {
    return try ChildProcess(
      "sh", ["-c", script, BuildProducts.program("feedclient")], environment: variables, passing: passing)
  }

  /// Runs a command to its end.
  func run(_ arguments: String..., input: String = "") throws -> Outcome {
    try Self.finish(try start(arguments), input: input)
  }

  /// Runs a command that must succeed, to its end.
  func succeed(
    _ arguments: String..., input: String = "", fileID: String = #fileID, filePath: String = #filePath,
    line: Int = #line, column: Int = #column
  ) throws {
    let outcome = try Self.finish(try start(arguments), input: input)
    expectEqual(
      outcome.code, 0, "\(arguments.joined(separator: " ")): \(outcome.errors)", fileID: fileID, filePath: filePath,
      line: line, column: column)
  }

  /// The revision of a feed.
  func revision(of feed: String) throws -> Int {
    let answer = try run("verify", feed).json
    guard let revision = answer["revision"].int else { throw TestFailure("no revision in \(answer)") }
    return revision
  }

  /// Gives a process its input and waits for its end.
  static func finish(_ process: ChildProcess, input: String = "") throws -> Outcome {
    do {
      if !input.isEmpty { try process.write(input) }
    } catch let error as SystemError where error.code == EPIPE {
      // The process ended before it read everything; its outcome says why.
    }
    process.closeInput()
    // The output is read first: a full pipe would keep the process from ending.
    try process.output.waitForEnd()
    let code = try process.waitForExit()
    return Outcome(code: code, output: process.output.text, errors: process.errors.text)
  }
}

extension ChildProcess {
  /// Waits until the process has written a file.
  func wait(forFile path: String) throws {
    let events = try FileEvents()
    _ = try events.watch(directory: String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]), for: .contents)
    while (try? SmallFile.read(path).isEmpty) != false {
      guard try !Readiness.readable.wait(on: events.descriptor, timeout: testTimeout).isEmpty else {
        throw TestFailure("\(path) was not written: \(errors.text)")
      }
      events.forEach { _ in }
    }
  }
}
