import FeedClient
import FeedJSON
import FeedSystem

/// One run of one command: its words, where its output goes, and how it reaches the daemon.
struct Invocation {
  let command: Command
  let options: ParsedOptions
  let console: Console
  let environment: Environment
  /// What came before the command on the line.
  let global: ParsedOptions
  /// When the command began, in nanoseconds of ``MonotonicClock``.
  private let begin = MonotonicClock.now
  /// What `backup` does.
  var copyState: Program.StateCopier = { _, _ in "this program cannot copy states" }

  var operands: [String] { options.operands }

  /// The socket's path, as the protocol's section 1 has it for clients.
  var socketPath: String {
    options.text("socket") ?? global.text("socket") ?? SocketPath.clientDefault(environment)
  }

  /// How long the user is ready to wait, if said.
  var timeout: Duration? { options.duration("timeout") ?? global.duration("timeout") }

  /// When to give up on a single request, in nanoseconds of ``MonotonicClock``: when the user's time is up, or some time
  /// from now.
  func deadline() -> UInt64 { end ?? MonotonicClock.now &+ 30_000_000_000 }

  /// When the time that the user gave is up; nil when none was given.
  var end: UInt64? {
    guard let timeout else { return nil }
    let (end, overflow) = begin.addingReportingOverflow(timeout.clampedNanoseconds)
    return overflow ? .max : end
  }

  /// The operand at `index`, which the command's count of operands says is there.
  func operand(_ index: Int) -> String { operands.indices.contains(index) ? operands[index] : "" }

  /// A usage error of this command.
  func usage(_ sentence: String) -> Failure {
    .usage("\(command.name): \(sentence)")
  }

  /// Connects and says hello.
  func connect(deadline: UInt64) throws(Failure) -> (Connection, ServerHello) {
    do throws(ClientError) {
      let left = Duration.milliseconds(Int64(MonotonicClock.milliseconds(until: deadline)))
      let connection = try Connection.open(path: socketPath, timeout: left)
      return (connection, try connection.hello(client: "feedclient/\(command.name)", deadline: deadline))
    } catch {
      throw .client(error)
    }
  }

  /// Asks one request and shows its result.
  /// - Parameters:
  ///   - params: writes the JSON object of the parameters.
  ///   - show: prints the result for people, and for programs too if it is a list; by default programs get it as it is.
  func request(
    _ method: String, params: (inout ByteBuffer) -> Void, show: (JSONView, Console) -> Void
  ) throws(Failure) -> ExitStatus {
    let deadline = deadline()
    let (connection, _) = try connect(deadline: deadline)
    let console = console
    do throws(ClientError) {
      try connection.call(method, params: params, deadline: deadline) { result in show(result, console) }
    } catch {
      throw .client(error)
    }
    try console.flush()
    return .done
  }
}
