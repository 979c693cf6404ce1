import FeedChange

/// The operations on managed feeds.
extension Catalog {
  /// Makes a managed feed hold exactly these rows, in their order: rows of the same identity that keep their order stay,
  /// others of the same identity are moved, different texts are updated. Leaves the change in `result`.
  ///
  /// - Throws: `noIdentity`, `invalidParams` when two rows have one identity, `limitExceeded`; then nothing changed.
  public func setManaged(_ feed: ManagedFeed, _ rows: ManagedRows) throws(FeedError) {
    startOperation()
    let mark = log.mark
    do throws(FeedError) {
      result = try feed.state.apply(try feed.state.plan(rows), rows, of: feed, at: now, &log)
    } catch {
      throw abandon(error, to: mark)
    }
    finishOperation(on: feed)
  }

  /// Notes how it stands with the database of a managed feed; no commit.
  public func setSource(of feed: ManagedFeed, _ status: SourceStatus) {
    feed.source = status
  }

  /// Reads another database, or the same one otherwise: the rows stay until others are set.
  func redefine(_ feed: ManagedFeed, _ definition: ManagedDefinition) {
    let state = feed.state
    let (former, type) = (state.definition, state.type)
    state.definition = definition
    state.type = definition.type
    log.append(undo: {
      state.definition = former
      state.type = type
    })
  }
}
