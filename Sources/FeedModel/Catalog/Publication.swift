import FeedChange

/// What an observer is told about a change of a feed besides the change itself.
public struct Publication {
  /// The revision before the change; the feed has the revision after it.
  public let from: UInt64
  /// The new element if the commit replaced the element of one row and did nothing else: it is the element of whichever row the
  /// change lists.
  public let updatedElement: ElementText?
  /// The hint that the change's operation was given, as JSON text.
  public let hint: [UInt8]?
}

/// Receives the changes of commits: for every feed with a `channel` and a history that a commit changed, once, after the
/// change is in place.
public protocol CommitObserver: AnyObject {
  func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication)
  /// The selected rows of `feed` have other paths now, or some were deleted.
  func didCarrySelection(of feed: Feed)
  /// `feed` was undefined. Its last change, the deletion of all sections, was published before.
  func didEnd(_ feed: Feed)
}
