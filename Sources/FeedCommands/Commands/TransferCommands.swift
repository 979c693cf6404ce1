import FeedClient
import FeedSystem
import Glibc

/// Commands that copy feeds and states.
extension Command {
  static let export = Command(
    name: "export", usage: ["FEED...", "--all"], summary: "write feeds as lines of JSON",
    examples: """
      feedclient export inbox > inbox.ndjson
      feedclient export --all | gzip > all.ndjson.gz
      """,
    about: """
      Writes feeds of any size to standard output, all of one revision: for each feed a line with its definition and \
      the number of its elements, then its elements, one a line. The feeds that a feed shows come before it. The \
      selection and managed feeds are left out. Exits with status 2 unless everything was written.
      """,
    options: [OptionDescription("all", help: "export every feed")], operands: 0...Int.max
  ) { invocation throws(Failure) in
    if invocation.console.isQuiet { throw invocation.usage("--quiet would leave nothing to export") }
    let isAll = invocation.options.contains("all")
    if isAll, !invocation.operands.isEmpty { throw invocation.usage("FEED and --all exclude each other") }
    guard isAll || !invocation.operands.isEmpty else { throw invocation.usage("missing argument FEED, or --all") }
    try FeedExport(invocation).run(isAll ? nil : invocation.operands)
    return .done
  }

  static let `import` = Command(
    name: "import", usage: ["[FILE|-] [OPTION]..."], summary: "read feeds that export wrote",
    examples: """
      feedclient import inbox.ndjson
      gunzip < all.ndjson.gz | feedclient import --replace
      """,
    about: """
      Defines the feeds of an export and pushes their elements, from FILE or standard input. The whole input is \
      checked before the first change: if it is empty, truncated or malformed, nothing is changed. The same holds if \
      the daemon refuses a definition, unless all of them are too long for one request, and if one of the feeds \
      already has elements, unless --replace or --merge is given. Elements that the daemon refuses \
      are reported with their line, and the others are imported.
      """,
    options: [
      OptionDescription("replace", help: "redefine feeds, and remove their elements first"),
      OptionDescription("merge", help: "keep the elements of feeds"),
      animation,
    ],
    operands: 0...1
  ) { invocation throws(Failure) in
    let (replaces, merges) = (invocation.options.contains("replace"), invocation.options.contains("merge"))
    if replaces, merges { throw invocation.usage("--replace and --merge exclude each other") }
    let policy: FeedImport.Policy = replaces ? .replace : merges ? .merge : .refuse
    let file = invocation.operands.first ?? "-"
    let (connection, hello) = try invocation.connect(deadline: invocation.deadline())
    if file == "-" { invocation.announceInput("an export") }
    let export: ExportLines
    do throws(SystemError) {
      let input = try RepeatableInput(
        file == "-" ? nil : file, copyIn: invocation.environment.nonEmpty("TMPDIR") ?? "/tmp", until: invocation.end)
      export = ExportLines(input, hello)
    } catch {
      throw error.code == ETIMEDOUT ? invocation.failure(.timedOut) : .system(error)
    }
    return try FeedImport(invocation, connection, maxFrame: hello.maxFrame, policy: policy).run(export)
  }

  static let backup = Command(
    name: "backup", usage: ["FILE"], summary: "copy the daemon's state into a file",
    examples: """
      sudo feedclient backup /var/backups/feedd.sqlite
      feedclient backup copy.sqlite --state ~/.local/state/feedd
      """,
    about: """
      Copies the daemon's state at one moment into FILE, which must not exist, while the daemon runs. The daemon tells \
      where its state is and this program reads it there: run it as root or as the daemon's user. With --state no \
      daemon needs to run.
      """,
    options: [
      OptionDescription("state", value: .text("DIR"), help: "state directory, instead of asking the daemon")
    ],
    operands: 1...1
  ) { invocation throws(Failure) in
    let given = invocation.options.text("state")
    let directory = if let given { given } else { try invocation.stateDirectory() }
    let file = invocation.operand(0)
    if let problem = invocation.states.copy(directory, file) { throw .state(problem) }
    return try invocation.showCopy(file, directory)
  }

  static let restore = Command(
    name: "restore", usage: ["FILE [OPTION]..."], summary: "put a backup in place of the state",
    examples: """
      sudo systemctl stop feedd.socket feedd
      sudo feedclient restore feedd.backup --state /var/lib/feedd --replace
      sudo systemctl start feedd.socket
      """,
    about: """
      Makes FILE, which backup wrote, the state of a daemon that does not run. Run it as root or as the daemon's user. \
      FILE stays as it is. Watchers of the restored daemon get a new epoch and start with a snapshot.
      """,
    options: [
      OptionDescription("state", value: .text("DIR"), help: "state directory", defaultText: "that of feedd"),
      OptionDescription("replace", help: "replace the state that is in the directory"),
    ],
    operands: 1...1
  ) { invocation throws(Failure) in
    guard let directory = invocation.options.text("state") ?? StatePath.standard(invocation.environment) else {
      throw invocation.usage("no state directory is known; give --state DIR")
    }
    let file = invocation.operand(0)
    _ = try Failure.ofSystem(try InputFile(file))
    let replaces = invocation.options.contains("replace")
    if let problem = invocation.states.restore(file, directory, replaces) { throw .state(problem) }
    return try invocation.showCopy(file, directory)
  }
}

/// Actions on stored state, provided by the program, because this module does not know how state is stored.
package struct StateActions: Sendable {
  /// Copies the state in a directory to a new file. Returns an error message, or nil.
  package var copy: @Sendable (_ directory: String, _ file: String) -> String?
  /// Restores the state in a directory from a copy. Returns an error message, or nil.
  package var restore: @Sendable (_ file: String, _ directory: String, _ replaces: Bool) -> String?

  package init(
    copy: @escaping @Sendable (String, String) -> String?,
    restore: @escaping @Sendable (String, String, Bool) -> String?
  ) {
    (self.copy, self.restore) = (copy, restore)
  }

  /// Actions that always fail.
  package static let none = StateActions(
    copy: { _, _ in "this program cannot copy states" }, restore: { _, _, _ in "this program cannot copy states" })
}

extension Invocation {
  fileprivate func stateDirectory() throws(Failure) -> String {
    let deadline = deadline()
    let (connection, hello) = try connect(deadline: deadline)
    if let state = try call(connection, "stats", deadline: deadline, { $0.member("state")?.string }) { return state }
    throw .state(
      "cannot find the state of \(hello.server) at \(socketPath): it keeps nothing (--durability memory), or hides "
        + "its directory from this user; run as root or as the daemon's user, or give --state DIR")
  }

  fileprivate func showCopy(_ file: String, _ directory: String) throws(Failure) -> ExitStatus {
    var answer = ParameterWriter()
    answer.add("file", file)
    answer.add("state", directory)
    try Operands.withView(of: answer.finish()) { Show.members($0, console) }
    return .done
  }
}
