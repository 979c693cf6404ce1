/// The command line of a program or of one of its commands: what is parsed and what `--help` prints are this one table.
///
/// `-h`/`--help` and `-V`/`--version` are in every table without being listed.
public struct OptionTable: Equatable, Sendable {
  /// How it is called, for example `feedd` or `feedclient push`.
  public var program: String
  /// What may follow the name, a line each, for example `[OPTION]... FEED [ELEMENT...|-]`.
  public var usage: [String]
  /// What it does, in a paragraph.
  public var about: String
  public var groups: [OptionGroup]
  /// Paragraphs after the options: examples, exit codes. Printed line by line as they are.
  public var notes: String

  public init(program: String, usage: [String], about: String, groups: [OptionGroup], notes: String = "") {
    self.program = program
    self.usage = usage
    self.about = about
    self.groups = groups + [OptionGroup("Information", [.help, .version])]
    self.notes = notes
  }

  /// Every option, in the order of the help.
  public var options: [OptionDescription] { groups.flatMap(\.options) }
}
