import FeedClient
import FeedSystem

/// `watch` for programs: the daemon's notifications as they come, one a line. What came together is written together,
/// and everything is written before anything is waited for.
final class NotificationLines: WatchDisplay {
  /// More than this is written before the rest of what came is looked at.
  private static let enough = 256 << 10
  private let console: Console

  init(_ console: Console) { self.console = console }

  var needsMirror: Bool { false }
  var deadline: UInt64? { nil }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    console.print(notification.whole)
  }

  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure) { try console.flush() }

  func leave() {}
}
