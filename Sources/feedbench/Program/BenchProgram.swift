import FeedSystem

/// The program `feedbench`, from its command line to its exit code.
enum BenchProgram {
  /// Runs one command.
  /// - Parameter arguments: the words after the program's name.
  /// - Returns: 0 when everything was measured, 1 when something could not be, 2 when the command line is wrong.
  static func main(_ arguments: [String]) -> Int32 {
    StandardStreams.ignoreBrokenPipes()
    do throws(UsageError) {
      return try run(arguments)
    } catch {
      complain("\(error)\nTry 'feedbench --help'.")
      return 2
    }
  }

  private static func run(_ arguments: [String]) throws(UsageError) -> Int32 {
    let options = try table.parse(arguments, stopsAtOperand: true)
    if options.wantsVersion { return say("feedbench \(ProgramVersion.text)\n") }
    guard let name = options.operands.first, !options.wantsHelp else {
      return say(table.helpText(width: width))
    }
    guard let command = Command.all.first(where: { $0.name == name }) else {
      let names = Command.all.map(\.name).joined(separator: ", ")
      throw UsageError("there is no command '\(name)'; there are \(names)")
    }
    return try run(command, Array(options.operands.dropFirst()))
  }

  private static func run(_ command: Command, _ arguments: [String]) throws(UsageError) -> Int32 {
    let options = try command.table.parse(arguments)
    if options.wantsHelp { return say(command.table.helpText(width: width)) }
    if let operand = options.operands.first { throw UsageError("'\(operand)' is not expected here") }
    var report = Report(
      command: command.name, runs: options.integer("runs") ?? Report.defaultRuns, asJSON: options.contains("json"))
    do {
      try command.run(options, &report)
      return 0
    } catch let error as UsageError {
      throw error
    } catch {
      complain("\(error)")
      return 1
    }
  }

  private static var table: OptionTable {
    let width = 10
    let list = Command.all.map { command in
      "  \(command.name)\(String(repeating: " ", count: width - command.name.count))\(command.summary)"
    }
    return OptionTable(
      program: "feedbench", usage: ["COMMAND [OPTION]...", "COMMAND --help"],
      about: """
        Measures feedd: its parts alone, its engine without sockets, and the whole daemon over its socket, there also beside \
        a Redis that does the same job. Numbers are the best of several runs; the last column says how far the median lay \
        above the best, which is the machine's noise.
        """, groups: [],
      notes: "Commands:\n" + list.joined(separator: "\n") + """


        Examples:
          feedbench json
          feedbench model --elements 1000 --elements 1000000
          feedbench socket --watchers 8 --redis /tmp/redis.sock
        """)
  }

  private static var width: Int {
    Terminal(descriptor: StandardStreams.output, environment: .current).columns
  }

  private static func say(_ text: String) -> Int32 {
    (try? StandardStreams.writeAll(text, to: StandardStreams.output)) == nil ? 1 : 0
  }

  private static func complain(_ text: String) {
    try? StandardStreams.writeAll("feedbench: \(text)\n", to: StandardStreams.error)
  }
}
