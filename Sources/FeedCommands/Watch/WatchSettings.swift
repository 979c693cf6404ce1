import FeedClient
import FeedSystem

/// What the command line of `watch` asks for.
struct WatchSettings: Equatable {
  var options: WatchOptions
  /// So many snapshot parts and deltas, then the end.
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
    for template in words.texts("template") { try templates.add(template) }
    if snapshotOnly, !options.initial {
      throw invocation.usage("--snapshot-only and --no-initial leave nothing to show")
    }
    if verifies, !options.initial {
      throw invocation.usage("--verify needs the whole feed; leave out --no-initial")
    }
  }
}

/// How `watch` shows what happens.
protocol WatchDisplay: AnyObject {
  /// Whether the rows are needed.
  var needsMirror: Bool { get }
  /// Shows, or notes to show, what the daemon said; the mirror has it already, and has made a delta of it if it is one.
  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64)
  /// Shows what is due.
  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure)
  /// When to call ``update(_:_:now:)`` although nothing happens.
  var deadline: UInt64? { get }
  /// The program stops, or is stopped by the terminal: leaves the screen as a shell wants it.
  func leave()
}

/// What a display may say besides the rows.
struct WatchStatus: Equatable {
  var feed: String
  /// Why there is nothing new to see; nil while the watch is under way.
  var complaint: String?
  /// The last revision found equal to the daemon's, with --verify.
  var verifiedRevision: UInt64?
}
