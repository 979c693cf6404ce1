import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// `feedclient` without its entry point: finds the command, runs it, and converts a failure to a message and an exit
/// status.
package enum Program {
  package static let version = ProgramVersion.text

  /// Runs a command line, given without the program's name.
  ///
  /// If a signal interrupted the command, this method does not return: the process ends by that signal, so that a shell
  /// loop around it ends too.
  package static func run(_ arguments: [String], environment: Environment, states: StateActions) -> ExitStatus {
    StandardStreams.occupyClosed()
    StandardStreams.ignoreBrokenPipes()
    SignalQueue.ignoreFileSizeLimit()
    let console = makeConsole(json: false, environment)
    do throws(Failure) {
      return try run(arguments, environment, states, console)
    } catch {
      error.tell(on: console)
      if case .interrupted(let signal) = error { end(by: signal) }
      return error.status
    }
  }

  /// Ends the process as if the signal had no handler. Returns only if it is ignored.
  private static func end(by number: Int32) {
    signal(number, SIG_DFL)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    kill(getpid(), number)
  }

  private static func run(
    _ arguments: [String], _ environment: Environment, _ states: StateActions, _ console: Console
  ) throws(Failure) -> ExitStatus {
    let global = try parse(help, arguments, stopsAtOperand: true)
    if let status = try inform(help, global, console) { return status }
    guard let name = global.operands.first else {
      console.sayRaw(help.helpText(width: console.errorTerminal.columns))
      return .usage
    }
    let words = Array(global.operands.dropFirst())
    if name == "help" { return try help(words, console) }
    let command = try find(name)
    let options = try parse(command.table, words)
    if let status = try inform(command.table, options, console) { return status }
    try check(options.operands, of: command)
    if let twice = ["socket", "timeout"].first(where: { global.contains($0) && options.contains($0) }) {
      throw .usage("--\(twice) is given twice; give it once")
    }
    func isGiven(_ option: String) -> Bool { options.contains(option) || global.contains(option) }
    let console = makeConsole(json: isGiven("json"), quiet: isGiven("quiet"), environment)
    let invocation = Invocation(
      command: command, options: options, console: console, environment: environment, global: global, states: states)
    if invocation.isVerbose, command.needsDaemon { invocation.saySocket() }
    return try finish(invocation)
  }

  /// Runs the command, and writes its output before a failure is reported.
  private static func finish(_ invocation: Invocation) throws(Failure) -> ExitStatus {
    do throws(Failure) {
      let status = try invocation.command.run(invocation)
      try invocation.console.flush()
      return status
    } catch {
      // The first error is the one to report.
      try? invocation.console.flush()
      guard case .client(.refused(let refusal)) = error else { throw error }
      refusal.tell(invocation)
      throw .told(.refused)
    }
  }

  /// Returns the command with a name.
  /// - Throws: a usage error that suggests similar names.
  static func find(_ name: String) throws(Failure) -> Command {
    if let command = CommandTable.command(named: name) { return command }
    let names = CommandTable.all.map(\.name)
    let advice = Spelling.suggestion(for: name, in: names + ["help"], otherwise: "; see feedclient --help")
    throw .usage("unknown command '\(name)'\(advice)")
  }

  private static func parse(
    _ table: OptionTable, _ words: [String], stopsAtOperand: Bool = false
  ) throws(Failure) -> ParsedOptions {
    do throws(UsageError) {
      return try table.parse(words, stopsAtOperand: stopsAtOperand)
    } catch {
      let isAnswered = error.message.hasSuffix("?")
      throw .usage(error.message + (isAnswered ? "" : "; see \(table.program) --help"))
    }
  }

  /// Checks the number of operands.
  /// - Throws: a usage error that names the missing or extra operand.
  static func check(_ operands: [String], of command: Command) throws(Failure) {
    guard !command.operands.contains(operands.count) else { return }
    let usage = command.usage
      .map { "usage: feedclient \(command.name)" + ($0.isEmpty ? "" : " \($0)") }.joined(separator: "\n")
    if operands.count > command.operands.upperBound {
      throw .usage("unexpected argument '\(operands[command.operands.upperBound])'\n\(usage)")
    }
    let names = command.usage[0].split(separator: " ").filter { !$0.hasPrefix("[") && !$0.hasPrefix("-") }
    let missing = names.indices.contains(operands.count) ? names[operands.count] : names.last ?? ""
    throw .usage("missing argument \(missing.replacing("...", with: ""))\n\(usage)")
  }

  /// `feedclient help [COMMAND]`
  private static func help(_ words: [String], _ console: Console) throws(Failure) -> ExitStatus {
    if words.count > 1 { throw .usage("unexpected argument '\(words[1])'\nusage: feedclient help [COMMAND]") }
    if words == ["exit-status"] {
      console.printRaw(exitStatus + "\n")
    } else {
      let table = try words.first.map { word throws(Failure) in try find(word).table } ?? help
      console.printRaw(table.helpText(width: console.terminal.columns))
    }
    try console.flush()
    return .done
  }

  /// Handles `--help` and `--version`. Returns nil if neither was given.
  private static func inform(
    _ table: OptionTable, _ options: ParsedOptions, _ console: Console
  ) throws(Failure) -> ExitStatus? {
    guard options.wantsHelp || options.wantsVersion else { return nil }
    console.printRaw(
      options.wantsHelp ? table.helpText(width: console.terminal.columns) : "feedclient \(version)\n")
    try console.flush()
    return .done
  }

  private static func makeConsole(json: Bool, quiet: Bool = false, _ environment: Environment) -> Console {
    Console(
      terminal: Terminal(descriptor: StandardStreams.output, environment: environment),
      errorTerminal: Terminal(descriptor: StandardStreams.error, environment: environment), isJSON: json, isQuiet: quiet
    )
  }
}

extension Program {
  /// The option table of the command line before the command.
  static var help: OptionTable {
    OptionTable(
      program: "feedclient",
      usage: ["[OPTION]... COMMAND [ARGUMENT]...", "help COMMAND|exit-status", "COMMAND --help"],
      about: "Pushes JSON elements into the feeds of feedd and watches what changes in them.", examples: examples,
      groups: [OptionGroup("Connection and output", Command.common)],
      notes: commands + "\n" + exitStatus)
  }

  private static var commands: String {
    let width = CommandTable.all.map(\.name.count).max() ?? 0
    var text = ""
    for group in CommandTable.groups {
      text += "\(group.title):\n"
      for command in group.commands {
        let margin = String(repeating: " ", count: width - command.name.count + 2)
        text += "  \(command.name)\(margin)\(command.summary)\n"
      }
      text += "\n"
    }
    return String(text.dropLast())
  }

  private static let examples = """
    feedclient define inbox --bin 'urgent=@.priority >= 8' --bin rest
    feedclient push inbox '{"id":1,"priority":9,"text":"disk full"}'
    feedclient watch inbox
    feedclient trigger inbox --state seen -- ./handle-change
    """

  private static let exitStatus = """
    Exit status:
      0  success
      1  the daemon refused the request, or nothing was found
      2  usage error, unusable file, failed output, or an element that is not JSON
      3  no daemon answers
      4  timed out
      5  the local copy of a feed differs from the daemon's
      6  the command of trigger failed until it had no retries left
    A command that a signal such as Ctrl-C interrupts ends by that signal.
    A command whose reader closes the pipe ends with 0, an incomplete export with 2.
    """
}
