import FeedClient
import FeedSystem

extension Command {
  static let backup = Command(
    name: "backup", usage: ["FILE"], summary: "copy what the daemon keeps into a new file",
    about: """
      Copies the daemon's state, as of one moment, into FILE, which must not exist; the daemon goes on meanwhile. It tells where its \
      state is, and this program reads it there, so run it as root or as the daemon's user. With --state no daemon is asked, and \
      none need run.
      """,
    options: [
      OptionDescription("state", value: .text("DIR"), help: "the state directory, instead of asking the daemon")
    ],
    notes: """
      To restore: stop feedd, put the file in the place of feedd.sqlite in its state directory, owned by the daemon's user, remove
      feedd.sqlite-wal and feedd.sqlite-shm there, start feedd.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    let directory: String
    if let given = invocation.options.text("state") {
      directory = given
    } else {
      directory = try stateOfDaemon(invocation)
    }
    let file = invocation.operand(0)
    if let problem = invocation.copyState(directory, file) { throw .state(problem) }
    var answer = Parameters()
    answer.add("file", file)
    answer.add("state", directory)
    try Operands.withView(of: answer.finish()) { Show.members($0, invocation.console) }
    return .done
  }

  /// Asks the daemon where it keeps its state.
  private static func stateOfDaemon(_ invocation: Invocation) throws(Failure) -> String {
    let deadline = invocation.deadline()
    let (connection, hello) = try invocation.connect(deadline: deadline)
    let state: String?
    do throws(ClientError) {
      state = try connection.call("stats", deadline: deadline) { $0.member("state")?.string }
    } catch {
      throw .client(error)
    }
    if let state { return state }
    throw .state(
      "\(hello.server) at \(invocation.socketPath) keeps nothing (--durability memory), or does not tell this user where: "
        + "run this as root or as its user, or name the directory with --state")
  }
}
