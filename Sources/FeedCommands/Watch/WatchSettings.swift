import FeedClient
import FeedJSON
import FeedSystem

/// The options of `watch`.
struct WatchSettings: Equatable {
  /// The output of a watch.
  enum Output: Equatable {
    /// The default: notifications for programs, a list for people.
    case changes
    /// The first rows as text after every change.
    case rows(Template, count: Int, separator: String?)
    /// The numbers of rows after every change.
    case counts
  }

  /// The feeds, in the order in which they are shown.
  var feeds: [String]
  /// The options of the first feed, which are those of the others as well.
  var options: WatchOptions
  var output = Output.changes
  /// How many changes of each feed end the watch; see ``WatchDisplay/countsStates``.
  var count: Int?
  var snapshotOnly = false
  var verifies = false
  var sinceFile: String?
  var timeout: Duration?
  var templates = Templates()

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    feeds = invocation.operands
    options = WatchOptions(feed: invocation.operand(0))
    options.client = "feedclient/watch"
    options.initial = !words.contains("no-initial")
    options.throttle = words.integer("throttle")
    options.waits = words.contains("wait")
    options.reconnects = words.contains("reconnect")
    count = words.integer("count")
    snapshotOnly = words.contains("snapshot-only")
    verifies = words.contains("verify")
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
      let rows = words.integer("rows") ?? 1
      return .rows(try Template(text[...], option: "--print"), count: rows, separator: words.text("separator"))
    }
    for option in ["rows", "separator"] where words.contains(option) {
      throw invocation.usage("--\(option) needs --print TEMPLATE")
    }
    return words.contains("counts") ? .counts : .changes
  }

  /// Throws if options contradict each other.
  private func check(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    if snapshotOnly, !options.initial {
      throw invocation.usage("--snapshot-only and --no-initial exclude each other")
    }
    if verifies, !options.initial {
      throw invocation.usage("--verify needs all rows and excludes --no-initial")
    }
    if output != .changes, !options.initial {
      throw invocation.usage("--print and --counts need all rows and exclude --no-initial")
    }
    if let twice = feeds.enumerated().first(where: { feeds[..<$0.offset].contains($0.element) }) {
      throw invocation.usage("'\(twice.element)' is given twice; give it once")
    }
    if feeds.count > 1, sinceFile != nil {
      throw invocation.usage("--since-file belongs to one feed; run a watch for each feed")
    }
    if feeds.count > 1, words.contains("print") {
      throw invocation.usage("--print shows one feed; define a composed feed that shows the others")
    }
    if words.contains("print"), words.contains("counts") {
      throw invocation.usage("--print and --counts exclude each other")
    }
    if words.contains("print"), !templates.isEmpty || invocation.console.wantsJSON {
      throw invocation.usage("--print excludes --template and --json")
    }
  }
}

/// How `watch` shows feeds.
protocol WatchDisplay: AnyObject {
  /// Whether the display needs the rows.
  var needsMirror: Bool { get }
  /// Whether the display shows complete states, so that a snapshot counts once for `--count` and not each of its parts.
  var countsStates: Bool { get }
  /// Shows a notification, or remembers it until ``update(_:now:)``. The mirror has it already; a delta comes decoded.
  /// - Parameter feed: the index of the feed.
  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, feed: Int, now: UInt64)
  /// Shows what is due.
  func update(_ feeds: [WatchState], now: UInt64) throws(Failure)
  /// When to call ``update(_:now:)`` although nothing happens.
  var deadline: UInt64? { get }
  /// Descriptors to poll for reading: signals and keys.
  var descriptors: [Int32] { get }
  /// Handles what can be read from ``descriptors``.
  func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput]
  /// Gives the terminal back.
  /// - Parameter last: what to leave on the screen; empty when the watch was interrupted.
  func leave(_ last: [WatchState])
}

/// The request of a person at the terminal.
enum WatchInput: Equatable {
  /// End the watch.
  case quit
  /// End the process by this signal.
  case signal(Int32)
  /// Select a row of a feed, or deselect it.
  case select(feed: Int, section: Int, row: Int, isOn: Bool)
}

/// What a display may show of one feed.
struct WatchState {
  var feed: String
  var mirror: Mirror?
  /// Why nothing new comes; nil while the watch is running.
  var complaint: String?
  /// The last revision that matched the daemon's digest, with `--verify`.
  var verifiedRevision: UInt64?
}
