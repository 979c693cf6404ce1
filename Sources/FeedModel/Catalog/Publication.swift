import FeedChange

/// The facts about a published change that are not in the change itself.
public struct Publication {
  /// The revision before the change; the feed has the revision after it.
  public let from: UInt64
  /// The new element if the commit only replaced the element of one row. It applies to the row that the change lists.
  public let updatedElement: ElementText?
  /// The animation hint of the operation that made the change, as JSON text.
  public let hint: [UInt8]?
}

/// Receives the changes of commits: once for every changed feed that has a `channel` and a history, after the change
/// has been applied.
public protocol CommitObserver: AnyObject {
  func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication)
  /// Like the other function, for a change of one row without a hint.
  /// - Parameters:
  ///   - from: the revision before the change.
  ///   - element: the element that the row shows; nil if it was deleted.
  func didChange(_ feed: Feed, by row: ChangeOfOne, from: UInt64, _ element: ElementText?)
  /// The rows of `feed` that are selected got other paths, or some of them were deleted.
  func didCarrySelection(of feed: Feed)
  /// `feed` was undefined. Its last change, which deletes all sections, was published before this call.
  func didEnd(_ feed: Feed)
  /// All feeds have the new state of a commit that may stop between two steps. Nothing changes them until this call ends,
  /// even if it stops, and everybody can read them.
  func didPublish()
}

extension Publication {
  /// The facts about the change of one row, see ``CommitObserver/didChange(_:by:from:_:)``.
  public init(of row: ChangeOfOne, from: UInt64, _ element: ElementText?) {
    self.init(from: from, updatedElement: row.isUpdate ? element : nil, hint: nil)
  }
}

extension CommitObserver {
  public func didChange(_ feed: Feed, by row: ChangeOfOne, from: UInt64, _ element: ElementText?) {
    didChange(feed, by: Change(row), Publication(of: row, from: from, element))
  }
}
