import FeedClient

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
