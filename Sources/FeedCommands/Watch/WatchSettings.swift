import FeedClient
import FeedJSON
import FeedSystem

/// What the command line of `watch` asks for.
struct WatchSettings: Equatable {
  /// What a watch prints.
  enum Output: Equatable {
    /// The default: notifications for programs, a list for people.
    case changes
    /// The first rows as text after every change.
    case rows(Template, count: Int, separator: String?)
    /// The numbers of rows after every change.
    case counts
  }

  var options: WatchOptions
  var output = Output.changes
  /// How many snapshot parts and deltas end the watch.
  var count: Int?
  var snapshotOnly = false
  var verifies = false
  var sinceFile: String?
  var timeout: Duration?
  var templates = Templates()

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
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
    // Numbers need no rows, unless the rows are compared as well.
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

  /// Refuses options that contradict each other.
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
    if words.contains("print"), words.contains("counts") {
      throw invocation.usage("--print and --counts exclude each other")
    }
    if words.contains("print"), !templates.isEmpty || invocation.console.wantsJSON {
      throw invocation.usage("--print excludes --template and --json")
    }
  }
}

/// How `watch` shows a feed.
protocol WatchDisplay: AnyObject {
  /// Whether the rows are needed.
  var needsMirror: Bool { get }
  /// Shows a notification, or remembers it until ``update(_:_:now:)``. The mirror has it already; a delta comes decoded.
  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64)
  /// Shows what is due.
  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure)
  /// When to call ``update(_:_:now:)`` although nothing happens.
  var deadline: UInt64? { get }
  /// Descriptors to poll for reading: signals and keys.
  var descriptors: [Int32] { get }
  /// Handles what can be read from ``descriptors``.
  func takeInput(_ mirror: Mirror?, now: UInt64) throws(Failure) -> [WatchInput]
  /// Gives the terminal back.
  /// - Parameter last: the rows to leave on the screen; nil when the watch was interrupted.
  func leave(_ last: Mirror?)
}

/// What a person at the terminal asks for.
enum WatchInput: Equatable {
  /// End the watch.
  case quit
  /// End the process by this signal.
  case signal(Int32)
  /// Select a row, or deselect it.
  case select(section: Int, row: Int, isOn: Bool)
}

/// What a display may show besides the rows.
struct WatchStatus: Equatable {
  var feed: String
  /// Why nothing new comes; nil while the watch is running.
  var complaint: String?
  /// The last revision found equal to the daemon's, with `--verify`.
  var verifiedRevision: UInt64?
}
