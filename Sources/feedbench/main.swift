import FeedJSON
import FeedSystem
import Glibc

exit(BenchmarkProgram.main(ProcessIdentity.arguments))

enum BenchmarkProgram {
  /// Runs one command.
  /// - Returns: 0 on success, 1 if a measurement failed, 2 for an error of the command line.
  static func main(_ arguments: [String]) -> Int32 {
    StandardStreams.ignoreBrokenPipes()
    do throws(UsageError) {
      return try run(arguments)
    } catch {
      complain("\(error); run 'feedbench --help'")
      return UsageError.exitStatus
    }
  }

  private static func run(_ arguments: [String]) throws(UsageError) -> Int32 {
    let options = try table.parse(arguments, stopsAtOperand: true)
    if options.wantsVersion { return say("feedbench \(ProgramVersion.text)\n") }
    guard let name = options.operands.first, !options.wantsHelp else {
      return say(table.helpText(width: width))
    }
    guard let command = BenchmarkCommand.all.first(where: { $0.name == name }) else {
      let names = BenchmarkCommand.all.map(\.name).joined(separator: ", ")
      throw UsageError("unknown command '\(name)': the commands are \(names)")
    }
    return try run(command, Array(options.operands.dropFirst()))
  }

  private static func run(_ command: BenchmarkCommand, _ arguments: [String]) throws(UsageError) -> Int32 {
    let options = try command.table.parse(arguments)
    if options.wantsHelp { return say(command.table.helpText(width: width)) }
    if let operand = options.operands.first { throw UsageError("unexpected argument '\(operand)'") }
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
    let list = BenchmarkCommand.all.map { command in
      "  \(command.name)\(String(repeating: " ", count: width - command.name.count))\(command.summary)"
    }
    return OptionTable(
      program: "feedbench", usage: ["COMMAND [OPTION]...", "COMMAND --help"],
      about: """
        Measures feedd: its engine without sockets, and the whole daemon over its socket, also beside Redis and NATS. \
        Numbers are the best of several runs. The last column is the distance of the median from the best, a measure of the \
        noise of the machine.
        """, groups: [],
      notes: "Commands:\n" + list.joined(separator: "\n") + """


        Examples:
          feedbench engine --elements 1000 --elements 1000000
          feedbench socket --watchers 8
          feedbench long
          feedbench core --part fanout
          feedbench log --part waiting
        """)
  }

  private static var width: Int { Terminal(descriptor: StandardStreams.output, environment: .current).columns }

  private static func say(_ text: String) -> Int32 {
    (try? StandardStreams.writeAll(text, to: StandardStreams.output)) == nil ? 1 : 0
  }

  private static func complain(_ text: String) {
    try? StandardStreams.writeAll("feedbench: \(text)\n", to: StandardStreams.error)
  }
}

/// The reason why a measurement failed.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

struct BenchmarkCommand: Sendable {
  let name: String
  /// The line in the list of commands.
  let summary: String
  /// The description in its help.
  let about: String
  let options: [OptionDescription]
  var notes = ""
  let run: @Sendable (ParsedOptions, inout Report) throws -> Void

  /// Every command.
  static let all = [engine, socket, long, core, log]

  var table: OptionTable {
    OptionTable(
      program: "feedbench \(name)", usage: ["[OPTION]..."], about: about,
      groups: [OptionGroup("Options", options + [Self.runsOption, Self.jsonOption])], notes: notes)
  }

  static func count(_ what: String, default count: Int) -> OptionDescription {
    OptionDescription("count", value: .integer(1...1_000_000_000), help: what, defaultText: grouped(count))
  }

  static func window(_ what: String = "number of pushes per turn") -> OptionDescription {
    OptionDescription("window", value: .integer(1...65_536), help: what, defaultText: "\(PushJob.defaultWindow)")
  }

  static let payload = OptionDescription(
    "payload", value: .integer(50...1_000_000), help: "size of an element in bytes",
    defaultText: "\(PushJob.defaultPayload)")

  private static let runsOption = OptionDescription(
    "runs", value: .integer(1...1000), help: "number of runs of each case; the best one is printed",
    defaultText: "\(Report.defaultRuns)")

  private static let jsonOption = OptionDescription("json", help: "print one JSON object a line instead of a table")
}

/// The measurements of a command in parts, all of which are run unless options name some.
protocol PartedMeasures: Sendable {
  associatedtype Part: RawRepresentable<String>, CaseIterable

  /// The part of the usual numbers of updates and elements, in per cent.
  var scale: Int { get }

  init(scale: Int)
  func run(_ part: Part, _ report: inout Report) throws
}

extension PartedMeasures {
  func scaled(_ count: Int) -> Int { max(1, count * scale / 100) }
}

extension BenchmarkCommand {
  /// A command that runs the measurements of a type.
  static func parts<Measures: PartedMeasures>(
    of type: Measures.Type, name: String, summary: String, about: String
  ) -> BenchmarkCommand {
    BenchmarkCommand(
      name: name, summary: summary, about: about,
      options: [
        OptionDescription(
          "part", value: .choice(Measures.Part.allCases.map(\.rawValue)), help: "part of the measurements",
          defaultText: "all parts", repeats: true),
        OptionDescription(
          "scale", value: .integer(1...100), help: "per cent of the usual number of updates and elements",
          defaultText: "100"),
      ]
    ) { options, report in
      let parts = options.texts("part").compactMap(Measures.Part.init)
      let measures = Measures(scale: options.integer("scale") ?? 100)
      for part in parts.isEmpty ? Array(Measures.Part.allCases) : parts { try measures.run(part, &report) }
    }
  }
}
