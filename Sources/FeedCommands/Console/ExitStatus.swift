import FeedClient

/// How `feedclient` ends; the numbers are fixed for scripts.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  /// The daemon refused something; its error is on standard error.
  case refused = 1
  /// The command line is wrong, or a file that it names, or an element is not JSON.
  case usage = 2
  /// No daemon answers, or it went away.
  case noDaemon = 3
  /// The time was up.
  case timedOut = 4
  /// The copy of a feed is wrong: a gap between deltas or another digest than the daemon's.
  case gap = 5
}
