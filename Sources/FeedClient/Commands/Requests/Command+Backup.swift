import FeedSystem

extension Command {
  static let backup = Command(
    name: "backup", usage: ["FILE"], summary: "copy what the daemon keeps into a new file",
    about: """
      Copies the daemon's state, as of one moment, into FILE, which must not exist; the daemon goes on meanwhile, or need not run. \
      The state directory is read by this program itself, so it must be allowed to: run it as root or as the daemon's user.
      """,
    options: [
      OptionDescription(
        "state", value: .text("DIR"), help: "the daemon's state directory",
        defaultText: "$STATE_DIRECTORY, for root /var/lib/feedd, else the user's own")
    ],
    notes: """
      To restore: stop feedd, put the file in the place of feedd.sqlite in its state directory, owned by the daemon's user, remove
      feedd.sqlite-wal and feedd.sqlite-shm there, start feedd.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    guard let directory = invocation.options.text("state") ?? StatePath.standard(invocation.environment) else {
      throw invocation.usage("there is no default state directory: name it with --state DIR")
    }
    let file = invocation.operand(0)
    if let problem = invocation.copyState(directory, file) { throw .state(problem) }
    var answer = Parameters()
    answer.add("file", file)
    try Operands.withView(of: answer.finish()) { Show.members($0, invocation.console) }
    return .done
  }
}
