import FeedSystem
import Glibc
import TestSupport

/// `feedclient` with the socket it shall use.
struct ClientCommand {
  let socket: String
  var environment: [String: String] = [:]

  /// Keeps the daemon running as long as there is a command for it.
  private var daemon: DaemonProcess?

  init(_ daemon: DaemonProcess) {
    socket = daemon.socketPath
    self.daemon = daemon
  }

  init(socket: String) { self.socket = socket }

  /// How a run ended and what it wrote.
  struct Outcome: Equatable {
    var code: Int32
    var output: String
    var errors: String

    /// The lines of standard output.
    var lines: [String] { output.split(separator: "\n").map(String.init) }
  }

  private var variables: [String: String] {
    environment.merging(["FEEDD_SOCKET": socket]) { given, _ in given }
  }

  /// Starts a command.
  func start(_ arguments: String...) throws -> ChildProcess { try start(arguments) }

  func start(_ arguments: [String], passing: [Int32] = []) throws -> ChildProcess {
    return try ChildProcess(
      BuildProducts.program("feedclient"), arguments, environment: variables, passing: passing)
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

  /// The revision of a feed.
  func revision(of feed: String) throws -> Int {
    let answer = try run("verify", feed).output
    guard let digits = answer.firstMatch(of: /"revision":(\d+)/)?.1, let number = Int(digits) else {
      throw TestFailure("no revision in \(answer)")
    }
    return number
  }

  /// Gives a process its input and waits for its end.
  static func finish(_ process: ChildProcess, input: String = "") throws -> Outcome {
    do {
      if !input.isEmpty { try process.write(input) }
    } catch let error as SystemError where error.code == EPIPE {
      // It ended before it read everything; its outcome says why.
    }
    process.closeInput()
    // The output first: a pipe that is full would keep the process from ending.
    try process.output.waitForEnd()
    let code = try process.waitForExit()
    return Outcome(code: code, output: process.output.text, errors: process.errors.text)
  }
}
