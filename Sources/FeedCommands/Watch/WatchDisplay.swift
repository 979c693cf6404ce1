import FeedClient

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
