import FeedClient
import FeedJSON
import FeedSystem

/// The options of `watch`.
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
      section: words.text("section").map { [feeds] in SectionName(feed: feeds[0], word: $0) })
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
    if verifies, !initial {
      throw invocation.usage("--verify needs all rows and excludes --no-initial")
    }
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

/// A display of `watch`.
protocol WatchDisplay: AnyObject {
  /// Whether the display needs the rows.
  var needsMirror: Bool { get }
  /// What the display needs to know of the rows of notifications.
  var rowNeeds: RowNeeds { get }
  /// Whether the display needs the identities of deleted rows.
  var needsIDs: Bool { get }
  /// Whether the display shows complete states. If so, `--count` counts a snapshot once, otherwise each of its parts.
  var countsStates: Bool { get }
  /// Shows a notification, or stores it until ``update(_:now:)``. The mirror has already applied it; a delta is
  /// decoded.
  /// - Parameters:
  ///   - news: the rows of the notification, if the display needs them.
  ///   - feed: the index of the feed.
  /// - Returns: whether there was something to show.
  func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool
  /// Shows pending updates.
  func update(_ feeds: [WatchState], now: UInt64) throws(Failure)
  /// The time to call ``update(_:now:)`` without an event; nil if there is none.
  var deadline: UInt64? { get }
  /// Descriptors to poll for reading: signals and keys.
  var descriptors: [Int32] { get }
  /// Handles the input of ``descriptors``.
  func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput]
  /// Restores the terminal.
  /// - Parameter last: the states to leave on the screen; empty if the watch was interrupted.
  func leave(_ last: [WatchState])
}

/// The request of a person at the terminal.
enum WatchInput: Equatable {
  /// End the watch.
  case quit
  /// End the process by this signal.
  case signal(Int32)
  /// Select or deselect a row of a feed.
  case select(feed: Int, section: Int, row: Int, isOn: Bool)
}

/// The state of one feed, for a display.
struct WatchState {
  var feed: String
  var mirror: Mirror?
  /// The reason why there are no updates; nil while the watch is running.
  var complaint: String?
  /// The last revision that matched the daemon's digest, with `--verify`.
  var verifiedRevision: UInt64?
}
