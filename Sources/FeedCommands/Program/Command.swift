import FeedClient
import FeedJSON
import FeedSystem

/// One command of `feedclient`: its command line, its help and its action.
struct Command: Sendable {
  var name: String
  /// The arguments after the name, one form on each line.
  var usage: [String]
  /// The summary in the list of commands.
  var summary: String
  /// Example commands, one on each line, which the help shows first.
  var examples: String = ""
  var about: String
  var options: [OptionDescription] = []
  /// Paragraphs after the options, printed unchanged.
  var notes: String = ""
  var operands: ClosedRange<Int>
  /// Whether the command talks to the daemon.
  var needsDaemon = true
  var run: @Sendable (Invocation) throws(Failure) -> ExitStatus

  var table: OptionTable {
    OptionTable(
      program: "feedclient \(name)", usage: usage, about: about, examples: examples,
      groups: [OptionGroup("Options", options), OptionGroup("Connection and output", Command.common)], notes: notes)
  }

  /// The options that are allowed before and after the command.
  static let common: [OptionDescription] = [
    OptionDescription(
      "socket", value: .text("PATH"), help: "socket of the daemon",
      defaultText: "$FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock if it was ever there, or /run/feedd/feedd.sock"),
    OptionDescription(
      "timeout", value: .duration(.milliseconds(1)...(.seconds(31_536_000))),
      help: "give up after this time and exit with status 4", defaultText: "30s; none for push, top, trigger and watch"),
    OptionDescription(
      "json", help: "print JSON, one value a line (default when standard output is not a terminal)"),
    OptionDescription("quiet", letter: "q", help: "print nothing but errors"),
    OptionDescription(
      "verbose", letter: "v", help: "add the protocol's code and data to errors, and tell which socket is used and why"),
  ]
}

extension Command {
  static let animation = OptionDescription(
    "animation", value: .text("HINT"), help: "hint for watchers that animate the change")

  /// The option for conditions, for all commands that change something.
  static let condition = OptionDescription(
    "if", value: .text("[FEED=]REVISION"),
    help: "change only if a feed, by default the changed one, has this revision; 'none' if it must be undefined",
    repeats: true)

  static let elementCondition = OptionDescription(
    "where", value: .text("FILTER"),
    help: "change nothing unless each element named matches, as in '!@.owner'; exit with 1 if one does not")

  /// The options of a command that changes rows.
  static let changing = [animation, condition]
}

extension Invocation {
  /// Sends one request that changes rows, and prints its result.
  ///
  /// Asks only for the numbers of the changed rows if their places are not printed, or are too many for a frame.
  func change(_ method: String, _ params: consuming ParameterWriter) throws(Failure) -> ExitStatus {
    let params = params.finish()
    do throws(Failure) {
      return try request(method, listsPlaces ? params : Self.counting(params), show: Show.mutation)
    } catch {
      guard listsPlaces, !console.wantsJSON, error.exceeds(["maxFrame"]) else { throw error }
      return try request(method, Self.counting(params), show: Show.mutation)
    }
  }

  /// Whether the places of changed rows may be printed.
  private var listsPlaces: Bool { console.isJSON && !console.isQuiet }

  private static func counting(_ params: String) -> String { Operands.adding("\"result\":\"counts\"", to: params) }

  /// Begins the parameters of a request that changes the feed of the first operand: the feed, the animation hint and
  /// the conditions.
  func changeParameters() throws(Failure) -> ParameterWriter {
    var params = ParameterWriter(feed: operand(0))
    try addChangeMembers(of: operand(0), to: &params)
    return params
  }

  /// Adds the animation hint and the conditions.
  /// - Parameter revision: the revision that the feed must have; nil for any.
  func addChangeMembers(of feed: String, to params: inout ParameterWriter, at revision: Int? = nil) throws(Failure) {
    if let hint = options.text("animation") { params.add("animation", hint) }
    if let filter = options.text("where") { params.add("where", filter) }
    if options.contains("absent") { params.add("absent", true) }
    var conditions = try revision.map { revision throws(Failure) in [try condition("\(revision)", of: feed)] } ?? []
    for word in options.texts("if") { conditions.append(try condition(word, of: feed)) }
    if !conditions.isEmpty { params.add("if", json: conditions) }
  }

  /// Returns the JSON of a condition such as `12`, `none` or `inbox/urgent=12`.
  private func condition(_ word: String, of feed: String) throws(Failure) -> String {
    let parts = word.split(separator: "=", omittingEmptySubsequences: false)
    let revision = parts.last.map(String.init) ?? ""
    guard parts.count <= 2, parts.first?.isEmpty == false, revision == "none" || (Count.parse(revision) ?? -1) >= 0
    else {
      throw usage("--if '\(word)': expected a revision such as 12, 'none', or FEED=REVISION")
    }
    var condition = ParameterWriter(feed: parts.count == 2 ? String(parts[0]) : feed)
    condition.add("revision", json: Count.parse(revision).map { "\($0)" } ?? "null")
    return condition.finish()
  }
}

/// All commands, in the order of the help.
enum CommandTable {
  /// The commands under one heading.
  struct Group: Sendable {
    var title: String
    var commands: [Command]
  }

  static let groups: [Group] = [
    Group(
      title: "Elements",
      commands: [.push, .set, .patch, .delete, .watch, .trigger, .get, .range, .query, .snapshot]),
    Group(title: "Arrays and singles", commands: [.insert, .replace, .remove, .move, .put]),
    Group(title: "Selection", commands: [.select, .deselect, .selected]),
    Group(title: "Feeds", commands: [.define, .undefine, .feeds, .describe, .activate, .insertChild, .removeChild]),
    Group(title: "Copies", commands: [.export, .import, .backup, .restore]),
    Group(
      title: "Daemon",
      commands: [.verify, .sync, .stats, .top, .clients, .quotas, .kick, .logLevel, .group, .ping, .call]),
    Group(title: "Shell", commands: [.completion]),
  ]

  static let all: [Command] = groups.flatMap(\.commands)

  static func command(named name: String) -> Command? { all.first { $0.name == name } }
}
