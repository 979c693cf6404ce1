extension Catalog {
  /// Goes on from a later revision, after commits that cannot be repeated.
  public func skip(to revision: UInt64) {
    self.revision = max(self.revision, revision)
  }

  /// Ends the past of every feed that shows rows of managed feeds: those are read again after a start, so nobody can be
  /// brought up to date across it. They begin anew at a revision that nobody has seen. O(feeds).
  public func forgetManagedHistory() {
    let managed = feeds.values.filter { $0 is ManagedFeed }
    if managed.isEmpty { return }
    revision &+= 1
    for feed in feeds.values where managed.contains(where: { $0.isShown(by: feed) }) {
      feed.revision = revision
      feed.selection = []
      feed.history?.restart(at: revision)
    }
  }
}
