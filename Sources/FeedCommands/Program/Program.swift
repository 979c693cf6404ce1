import FeedClient
import FeedSystem

/// The whole of `feedclient` but its arguments: finds the command, runs it, and turns what went wrong into words on
/// standard error and an exit status.
package enum Program {
  package static let version = ProgramVersion.text

  /// Copies the state of a daemon from a directory into a new file. Returns what went wrong, nil when nothing did.
  package typealias StateCopier = @Sendable (_ directory: String, _ file: String) -> String?

  /// Runs a command line, given without the program's own name.
  /// - Parameter copyState: what `backup` does; handed in, so that the library need not know the daemon's store.
  package static func run(
    _ arguments: [String], environment: Environment, copyState: @escaping StateCopier
  ) -> ExitStatus {
    StandardStreams.ignoreBrokenPipes()
    let console = makeConsole(json: false, environment)
    do throws(Failure) {
      return try run(arguments, environment, copyState, console)
    } catch {
      Explanation(error).tell(on: console)
      return error.status
    }
  }

  private static func run(
    _ arguments: [String], _ environment: Environment, _ copyState: @escaping StateCopier, _ console: Console
  ) throws(Failure) -> ExitStatus {
    let global = try parse(help, arguments, stopsAtOperand: true)
    if let status = try inform(help.helpText(width: console.terminal.columns), global, console) { return status }
    guard let name = global.operands.first else {
      console.sayRaw(help.helpText(width: console.errorTerminal.columns))
      return .usage
    }
    let words = Array(global.operands.dropFirst())
    if name == "help" { return try help(words, console) }
    let command = try find(name)
    let options = try parse(command.table, words)
    let text = command.table.helpText(width: console.terminal.columns)
    if let status = try inform(text, options, console) { return status }
    try check(options.operands, of: command)
    let json = options.contains("json") || global.contains("json")
    let invocation = Invocation(
      command: command, options: options, console: makeConsole(json: json, environment), environment: environment,
      global: global, copyState: copyState)
    return try finish(invocation)
  }

  /// Runs the command; what it has printed is written before what went wrong is told.
  private static func finish(_ invocation: Invocation) throws(Failure) -> ExitStatus {
    do throws(Failure) {
      let status = try invocation.command.run(invocation)
      try invocation.console.flush()
      return status
    } catch {
      if error != .readerGone { try invocation.console.flush() }
      throw error
    }
  }

  /// The command of that name, or an error that suggests what may have been meant.
  static func find(_ name: String) throws(Failure) -> Command {
    if let command = CommandTable.command(named: name) { return command }
    let similar = CommandTable.similar(to: name)
    let advice =
      similar.isEmpty ? "see feedclient --help" : "did you mean \(similar.prefix(3).joined(separator: " or "))?"
    throw .usage("there is no command '\(name)'; \(advice)")
  }

  private static func parse(
    _ table: OptionTable, _ words: [String], stopsAtOperand: Bool = false
  ) throws(Failure) -> ParsedOptions {
    do throws(UsageError) {
      return try table.parse(words, stopsAtOperand: stopsAtOperand)
    } catch {
      throw .usage("\(error.message); see \(table.program) --help")
    }
  }

  static func check(_ operands: [String], of command: Command) throws(Failure) {
    guard !command.operands.contains(operands.count) else { return }
    let problem = operands.count < command.operands.lowerBound ? "something is missing" : "there is a word too many"
    throw .usage("\(problem); the command line is: feedclient \(command.name) \(command.usage[0])")
  }

  /// `feedclient help [COMMAND]`
  private static func help(_ words: [String], _ console: Console) throws(Failure) -> ExitStatus {
    let table = try words.first.map { word throws(Failure) in try find(word).table } ?? help
    console.printRaw(table.helpText(width: console.terminal.columns))
    try console.flush()
    return .done
  }

  /// Carries out `--help` and `--version`; nil when neither was given.
  private static func inform(_ text: String, _ options: ParsedOptions, _ console: Console) throws(Failure)
    -> ExitStatus?
  {
    guard options.wantsHelp || options.wantsVersion else { return nil }
    console.printRaw(options.wantsHelp ? text : "feedclient \(version)\n")
    try console.flush()
    return .done
  }

  private static func makeConsole(json: Bool, _ environment: Environment) -> Console {
    Console(
      terminal: Terminal(descriptor: StandardStreams.output, environment: environment),
      errorTerminal: Terminal(descriptor: StandardStreams.error, environment: environment), isJSON: json)
  }
}

extension Program {
  /// The command line before the command, and the help of the whole.
  static var help: OptionTable {
    OptionTable(
      program: "feedclient",
      usage: ["[OPTION]... COMMAND [ARGUMENT]...", "help COMMAND", "COMMAND --help"],
      about: """
        Talks to feedd, the daemon that keeps lists of JSON elements in sync between programs: puts elements into \
        feeds, and shows what changes in them.
        """,
      groups: [OptionGroup("Connection and output", Command.common)],
      notes: commands + "\n" + examples)
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
    Examples:
      feedclient define inbox --bin 'urgent=@.priority >= 8' --bin rest --sort 'urgent=$.priority:desc'
      feedclient push inbox '{"id":1,"priority":9,"text":"disk full"}'
      journalctl -f -o json | jq -c --unbuffered '{id:.__CURSOR,text:.MESSAGE}' | feedclient push log
      feedclient watch inbox
      feedclient watch inbox --since-file seen.json --reconnect | while read -r line; do …; done

    Exit status: 0 done, 1 the daemon refused, 2 wrong command line or an element that is not JSON, 3 no daemon,
    4 the time was up, 5 a gap was found: the copy of a feed is not what the daemon has.
    """
}
