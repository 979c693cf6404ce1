import FeedChange
import FeedJSON

/// How many rows may be selected.
extension Catalog {
  /// Throws `limitExceeded` if so many rows of a feed may not be selected. Each change of the feed carries all of them.
  ///
  /// Rows of managed feeds are not there during replay, which must decide as the daemon did. So rows of feeds that show
  /// managed feeds are left out of the sums for other feeds. O(1), or O(feeds) if only these rows leave no room.
  public func checkSelected(_ count: Int, of feed: Feed) throws(FeedError) {
    guard count <= limits.maxSelected else {
      throw .limitExceeded(
        limit: "maxSelected", value: limits.maxSelected,
        reason:
          "\(counted(count, "row")) of feed \"\(feed.name)\" would be selected; select fewer, or start feedd with a "
          + "larger --max-selected")
    }
    let added = count - feed.selection.count
    guard added > 0, feed.derived != nil, let account = feed.account else { return }
    let all = (user: account.selected, all: accounts.total.selected)
    guard let error = account.noRoom(selected: added, besides: all, limits) else { return }
    if containsManagedRows(feed) { throw error }
    var stable = all
    for other in feeds.values where other.derived != nil && containsManagedRows(other) {
      stable.all -= other.selection.count
      if other.account === account { stable.user -= other.selection.count }
    }
    if let error = account.noRoom(selected: added, besides: stable, limits) { throw error }
  }
}
