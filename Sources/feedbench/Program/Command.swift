import FeedSystem

/// One command of `feedbench`: what it measures, its options, how it runs.
struct Command: Sendable {
  let name: String
  /// What it measures, in a line of the list of commands.
  let summary: String
  /// What the numbers are made of, for its own help.
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
    "runs", value: .integer(1...1000), help: "times that each case is run; the best is printed",
    defaultText: "\(Report.defaultRuns)")

  private static let jsonOption = OptionDescription(
    "json", help: "print one JSON object a line, with the plain numbers, instead of a table")
}
