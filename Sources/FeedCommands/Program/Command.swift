import FeedClient
import FeedJSON
import FeedSystem

/// One command of `feedclient`: what its command line is, what its help says, and what it does.
struct Command: Sendable {
  var name: String
  /// What may follow the name, a line each.
  var usage: [String]
  /// What it does, in the list of commands.
  var summary: String
  /// What it does, in its own help.
  var about: String
  var options: [OptionDescription] = []
  /// Examples and what else is worth knowing, lines as they are.
  var notes: String = ""
  /// How many operands it takes.
  var operands: ClosedRange<Int>
  var run: @Sendable (Invocation) throws(Failure) -> ExitStatus

  /// The command line as parsed and as its help prints it.
  var table: OptionTable {
    OptionTable(
      program: "feedclient \(name)", usage: usage, about: about,
      groups: [OptionGroup("Options", options), OptionGroup("Connection and output", Command.common)], notes: notes)
  }

  /// The options that stand before the command as well as after it.
  static let common: [OptionDescription] = [
    OptionDescription(
      "socket", value: .text("PATH"), help: "the daemon's socket",
      defaultText: "$FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock or /run/feedd/feedd.sock"),
    OptionDescription(
      "timeout", value: .duration(.milliseconds(1)...(.seconds(31_536_000))),
      help: "give up after this time and exit with 4", defaultText: "30s; none for watch and push"),
    OptionDescription("json", help: "print JSON, one object a line, as when the output is not a terminal"),
  ]
}

extension Command {
  /// The hint that every command takes that changes rows.
  static let animation = OptionDescription(
    "animation", value: .text("HINT"), help: "a word for watchers that animate the change")
}

extension Invocation {
  /// Begins the parameters of a request that changes the feed of the first operand: the feed and the hint.
  func changeParameters() -> ParameterWriter {
    var params = ParameterWriter()
    params.add("feed", operand(0))
    if let hint = options.text("animation") { params.add("animation", hint) }
    return params
  }
}

/// All commands, in the order of the help.
enum CommandTable {
  /// Commands that stand together under one heading.
  struct Group: Sendable {
    var title: String
    var commands: [Command]
  }

  static let groups: [Group] = [
    Group(title: "Elements in and out", commands: [.push, .set, .delete, .watch, .get, .range, .query, .snapshot]),
    Group(title: "Arrays and singles", commands: [.insert, .replace, .remove, .move, .put]),
    Group(title: "Selection", commands: [.select, .deselect, .selected]),
    Group(title: "Feeds", commands: [.define, .undefine, .feeds, .describe, .activate, .insertChild, .removeChild]),
    Group(title: "The daemon", commands: [.verify, .sync, .stats, .clients, .ping, .backup, .call]),
  ]

  static let all: [Command] = groups.flatMap(\.commands)

  /// The command of that name.
  static func command(named name: String) -> Command? { all.first { $0.name == name } }

  /// The commands that somebody who wrote `name` may have meant, nearest first.
  static func similar(to name: String) -> [String] {
    let scored = all.map(\.name).map { ($0, Spelling.distance(name, $0)) }
    let close = scored.filter { $0.1 <= max(1, min(name.count, $0.0.count) / 2) || $0.0.hasPrefix(name) }
    return close.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map(\.0)
  }
}
