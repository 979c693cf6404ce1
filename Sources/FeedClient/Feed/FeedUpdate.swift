/// What a ``Feed`` gives: something that happened, and the rows as they are after it.
public struct FeedUpdate: Sendable {
  /// What happened.
  public enum Cause: Sendable {
    /// All rows came anew: at the start, and when the daemon could not go on from where this copy was.
    case snapshot
    /// Rows changed.
    case delta(Delta)
    /// Other rows are selected.
    case selection
    /// The daemon, or the feed, is not there, for this reason. The rows are the last known ones; attempts go on.
    case interrupted(ClientError)
    /// The watch goes on after an interruption, and nothing was missed.
    case resumed
  }

  public var cause: Cause
  /// The rows; nil before the first snapshot is complete. A copy: it does not change, and costs little until the feed
  /// does.
  public var mirror: Mirror?
}
