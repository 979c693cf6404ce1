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

  var options: WatchOptions
  var output = Output.changes
  /// The number of snapshot parts and deltas after which the watch ends.
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
    if words.contains("print"), words.contains("counts") {
      throw invocation.usage("--print and --counts exclude each other")
    }
    if words.contains("print"), !templates.isEmpty || invocation.console.wantsJSON {
      throw invocation.usage("--print excludes --template and --json")
    }
  }
}

/// A display of `watch`.
protocol WatchDisplay: AnyObject {
  /// Whether the display needs the rows.
  var needsMirror: Bool { get }
  /// Shows a notification, or stores it until ``update(_:_:now:)``. The mirror has already applied it; a delta is
  /// decoded.
  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64)
  /// Shows pending updates.
  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure)
  /// The time to call ``update(_:_:now:)`` without an event; nil if there is none.
  var deadline: UInt64? { get }
  /// Descriptors to poll for reading: signals and keys.
  var descriptors: [Int32] { get }
  /// Handles the input of ``descriptors``.
  func takeInput(_ mirror: Mirror?, now: UInt64) throws(Failure) -> [WatchInput]
  /// Restores the terminal.
  /// - Parameter last: the rows to leave on the screen; nil if the watch was interrupted.
  func leave(_ last: Mirror?)
}

/// The request of a person at the terminal.
enum WatchInput: Equatable {
  /// End the watch.
  case quit
  /// End the process by this signal.
  case signal(Int32)
  /// Select or deselect a row.
  case select(section: Int, row: Int, isOn: Bool)
}

/// The state that a display may show besides the rows.
struct WatchStatus: Equatable {
  var feed: String
  /// The reason why there are no updates; nil while the watch is running.
  var complaint: String?
  /// The last revision that matched the daemon's digest, with `--verify`.
  var verifiedRevision: UInt64?
}
