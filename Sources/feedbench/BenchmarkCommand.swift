import FeedSystem

/// A command of `feedbench`.
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
  static let all = [json, query, model, engine, tree, socket]

  var table: OptionTable {
    OptionTable(
      program: "feedbench \(name)", usage: ["[OPTION]..."], about: about,
      groups: [OptionGroup("Options", options + [Self.runsOption, Self.jsonOption])], notes: notes)
  }

  static func count(_ what: String, default count: Int) -> OptionDescription {
    OptionDescription(
      "count", value: .integer(1...1_000_000_000), help: what, defaultText: "\(count)")
  }

  private static let runsOption = OptionDescription(
    "runs", value: .integer(1...1000), help: "number of runs of each case; the best one is printed",
    defaultText: "\(Report.defaultRuns)")

  private static let jsonOption = OptionDescription(
    "json", help: "print one JSON object a line instead of a table")
}
