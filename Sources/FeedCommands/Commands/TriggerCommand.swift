import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let trigger = Command(
    name: "trigger", usage: ["FEED --state=FILE [OPTION]... -- COMMAND [ARGUMENT]..."],
    summary: "run a command for each change of a feed",
    examples: """
      feedclient trigger inbox --state seen -- ./handle-change
      feedclient trigger inbox --state seen --where '@.priority > 7' -- ./alarm
      feedclient trigger inbox --state seen --batch -- ./rebuild
      """,
    about: """
      Runs COMMAND for every change of a feed, at least once, whichever of the daemon, this program and the command is \
      stopped or killed meanwhile. The command reads the change as a JSON object from standard input, and finds \
      FEEDD_FEED, FEEDD_REVISION and FEEDD_KIND in its environment. If it exits with 0, the change is done; otherwise it \
      is run again.
      """,
    options: [
      OptionDescription("state", value: .text("FILE"), help: "the file with the position and the changes not done"),
      OptionDescription("each", help: "run the command for each changed row (default)"),
      OptionDescription("batch", help: "run the command for all changes that came meanwhile, coalesced"),
      OptionDescription(
        "section", value: .text("SECTION"), help: "only rows of a section; one that moves into it is added"),
      OptionDescription(
        "on", value: .text("KINDS"), help: "kinds of changes, of added,updated,deleted,moved",
        defaultText: "added,updated,deleted"),
      OptionDescription(
        "where", value: .text("FILTER"),
        help: "only rows whose element matches, a condition as for bins such as '@.priority >= 8'"),
      OptionDescription("initial", help: "without a position in FILE, hand over all present rows as added"),
      OptionDescription(
        "retries", value: .integer(0...1_000_000), help: "repetitions of a command that fails before giving up",
        defaultText: "10"),
      OptionDescription(
        "jobs", value: .integer(1...1_000), help: "number of commands that may run at once", defaultText: "1"),
    ],
    notes: """
      The pause before a repetition is 100 ms at first, then twice that, up to 60 s.
      When it gives up, trigger ends with status 6, and the next one begins with that
      change. The same change is repeated with the same input, so a command that
      remembers the last epoch and revision can do it exactly once.
      With --jobs, changes of one element keep their order.
      The first SIGINT, SIGTERM or SIGHUP lets running commands end and starts no
      more; a second one is sent to them.
      """,
    operands: 2...10_000
  ) { invocation throws(Failure) in
    try TriggerRun(invocation, TriggerSettings(invocation)).run()
  }
}

/// The options of `trigger`.
struct TriggerSettings {
  let feed: String
  let command: [String]
  let state: String
  /// Whether the command runs once for all changes that came meanwhile, and not for each.
  let isBatch: Bool
  let section: SectionWord?
  let kinds: Set<String>
  let filter: ChangeFilter
  /// The text of `--where`.
  let condition: String?
  /// Whether the rows that are there at the first start are handed over as added.
  let initial: Bool
  let retries: Int
  let jobs: Int

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    feed = invocation.operand(0)
    command = Array(invocation.operands.dropFirst())
    if command[0].isEmpty { throw invocation.usage("COMMAND is empty") }
    guard let path = words.text("state") else { throw invocation.usage("missing option --state FILE") }
    state = path
    if words.contains("each"), words.contains("batch") {
      throw invocation.usage("--each and --batch exclude each other")
    }
    isBatch = words.contains("batch")
    section = words.text("section").map { [feed] in SectionWord(feed: feed, word: $0) }
    condition = words.text("where")
    filter = try ChangeFilter(words.text("on") ?? "added,updated,deleted", option: "on", where: condition)
    kinds = filter.words ?? []
    initial = words.contains("initial")
    retries = words.integer("retries") ?? 10
    jobs = words.integer("jobs") ?? 1
  }
}
