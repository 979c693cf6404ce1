import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let watch = Command(
    name: "watch", usage: ["FEED... [OPTION]..."], summary: "show feeds and their changes",
    examples: """
      feedclient watch inbox
      feedclient watch inbox todo
      feedclient watch inbox --print '{text}' --rows 3 --separator ' | '
      feedclient watch inbox --counts
      feedclient watch inbox --only added --where '@.p > 7' --template '{text}'
      feedclient watch inbox --since-file seen.json --reconnect | ./show-changes
      feedclient watch inbox --no-initial --count 1 --timeout 60s
      """,
    about: """
      Shows feeds and every change to them until interrupted. On a terminal it is a list, several feeds side by side, \
      redrawn in place, with + ~ > - where rows were added, updated, moved or deleted; ? shows its keys. Otherwise, and \
      with --json, it is the daemon's notifications, one JSON object a line, each written at once. With --template it is \
      a line for each row, with a sign: + ~ > >~ - where it was added, updated, moved, moved and updated, or deleted; ! \
      before a new state that replaces the one before, and ? for its rows if they cannot be compared.
      """,
    options: [
      OptionDescription(
        "print", value: .text("TEMPLATE"),
        help: "print the first rows of each feed as text after every change; see --template"),
      OptionDescription(
        "rows", value: .integer(1...1_000_000),
        help: "maximum number of rows of each feed with --print", defaultText: "the first one, or an empty line"),
      OptionDescription(
        "separator", value: .text("TEXT"), help: "with --print, join the rows into one line with TEXT"),
      OptionDescription("counts", help: "print the number of rows of each section after every change"),
      Command.template,
      OptionDescription(
        "count", value: .integer(1...Int.max),
        help: "end after this many changes of each feed; a snapshot is one, in JSON each of its parts"),
      OptionDescription("snapshot-only", help: "end when the snapshot is complete"),
      OptionDescription(
        "no-initial",
        help: "start with the first change instead of a snapshot; on a terminal, print a line for each changed row"),
      OptionDescription(
        "only", value: .text("KINDS"),
        help: "show only rows that were added, updated, deleted or moved: a list such as added,updated"),
      OptionDescription(
        "section", value: .text("SECTION"), help: "show only rows of a section; one that moves into it is added"),
      OptionDescription(
        "where", value: .text("FILTER"),
        help: "show only rows whose element matches, a condition as for bins such as '@.priority >= 8'"),
      OptionDescription(
        "ids", help: "in JSON, list the identities of deleted rows, as --template and filters do anyway"),
      OptionDescription("wait", help: "wait for the daemon and for the feed to be defined"),
      OptionDescription("reconnect", help: "connect again after a lost connection and resume"),
      OptionDescription(
        "since-file", value: .text("FILE"),
        help: "resume from the positions in FILE, and move them on when the reader of the output has taken it"),
      OptionDescription(
        "verify", help: "compare the copy with the daemon's digest when the feed is quiet, and at the end"),
      OptionDescription(
        "throttle", value: .integer(0...86_400_000), help: "receive at most one delta in this many milliseconds"),
    ],
    notes: """
      A script that must not miss a change is better started by feedclient trigger:
      a line that a reader has taken is not printed again if the reader fails.
      --only leaves out the rows of snapshots too. A deleted row is judged by its last
      element, and shown if that is not known.
      The list on a terminal ends with q. Ctrl-C ends the process by SIGINT.
      What shows the whole state begins with the present one, also with --since-file:
      the list on a terminal, --print, --counts and --snapshot-only.
      --timeout ends the watch with status 4. --wait and --reconnect never give up.
      A watch whose feed is removed ends with status 1, or with --reconnect waits
      until the feed is defined again. Waiting for a feed needs the right to read
      $feeds, if the daemon has access rules.
      """,
    operands: 1...64
  ) { invocation throws(Failure) in
    let settings = try WatchSettings(invocation)
    let console = invocation.console
    let display: any WatchDisplay
    if settings.output != .changes {
      display = StateLines(console, settings.output, feeds: settings.feeds.count)
    } else if console.isJSON, settings.templates.isEmpty {
      display = NotificationLines(console, settings)
    } else if console.terminal.canRedraw, settings.initial, settings.filter.isOpen {
      display = try LiveDisplay(console, invocation.environment, settings)
    } else {
      display = ChangeLines(console, settings)
    }
    return try WatchRun(invocation, settings, display).run()
  }
}

struct WatchSettings {
  /// The output of a watch.
  enum Output: Equatable {
    /// The default: notifications for programs, a list for people.
    case changes
    /// The first rows of each feed as text after every change; without a count, the first one or an empty line.
    case rows(Template, count: Int?, separator: String?)
    /// The numbers of rows after every change.
    case counts
  }

  /// The feeds, in the order on the screen.
  var feeds: [String]
  /// The options of the first feed. The other feeds use them too.
  var options: WatchOptions
  var output = Output.changes
  /// The number of changes of each feed after which the watch ends; see ``WatchDisplay/countsStates``.
  var count: Int?
  var snapshotOnly = false
  var verifies = false
  /// Whether notifications list the identities of deleted rows.
  var ids = false
  var sinceFile: String?
  var timeout: Duration?
  var templates = Templates()
  /// Whether the rows of the first snapshot are shown.
  var initial: Bool
  /// The rows that are shown.
  var filter: ChangeFilter

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    feeds = invocation.operands
    options = WatchOptions(feed: invocation.operand(0))
    options.client = "feedclient/watch"
    initial = !words.contains("no-initial")
    options.initial = initial
    filter = try ChangeFilter(
      words.text("only"), option: "only", where: words.text("where"),
      section: words.text("section").map { [feeds] in SectionWord(feed: feeds[0], word: $0) })
    options.throttle = words.integer("throttle")
    options.waits = words.contains("wait")
    options.reconnects = words.contains("reconnect")
    count = words.integer("count")
    snapshotOnly = words.contains("snapshot-only")
    verifies = words.contains("verify")
    ids = words.contains("ids")
    sinceFile = words.text("since-file")
    timeout = invocation.timeout
    templates = try invocation.templates()
    output = try Self.output(invocation)
    // Counts need no rows, unless the rows are verified too.
    options.elements = output != .counts || verifies
    try check(invocation)
  }

  private static func output(_ invocation: Invocation) throws(Failure) -> Output {
    let words = invocation.options
    if let text = words.text("print") {
      let template = try Template(text[...], option: "--print")
      return .rows(template, count: words.integer("rows"), separator: words.text("separator"))
    }
    for option in ["rows", "separator"] where words.contains(option) {
      throw invocation.usage("--\(option) needs --print TEMPLATE")
    }
    return words.contains("counts") ? .counts : .changes
  }

  /// Throws if options contradict each other.
  private func check(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    if snapshotOnly, !initial || filter.words != nil {
      if initial { throw invocation.usage("--snapshot-only shows no changes and excludes --only") }
      throw invocation.usage("--snapshot-only and --no-initial exclude each other")
    }
    if verifies, !initial { throw invocation.usage("--verify needs all rows and excludes --no-initial") }
    if output != .changes, !initial {
      throw invocation.usage("--print and --counts need all rows and exclude --no-initial")
    }
    if let twice = feeds.enumerated().first(where: { feeds[..<$0.offset].contains($0.element) }) {
      throw invocation.usage("'\(twice.element)' is given twice; give it once")
    }
    if output != .changes, !filter.isOpen || ids {
      throw invocation.usage("--print and --counts show whole states and exclude --only, --where, --section and --ids")
    }
    if filter.section != nil, feeds.count > 1 { throw invocation.usage("--section is that of one feed; give one") }
    if words.contains("print"), words.contains("counts") {
      throw invocation.usage("--print and --counts exclude each other")
    }
    if words.contains("counts"), !templates.isEmpty {
      throw invocation.usage("--counts and --template exclude each other")
    }
    if words.contains("print"), !templates.isEmpty || invocation.console.wantsJSON {
      throw invocation.usage("--print excludes --template and --json")
    }
  }
}

extension WatchSettings {
  /// The rows for which a line is printed.
  func shown(_ rows: [RowChange]) -> [RowChange] {
    filter.seen(rows).filter { initial || $0.kind != .initial && $0.kind != .unchanged }
  }
}

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
