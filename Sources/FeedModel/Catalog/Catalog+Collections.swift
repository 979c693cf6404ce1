import FeedChange
import FeedJSON

/// The operations on collections. Each leaves its change in `result` and, when it throws, nothing changed.
extension Catalog {
  /// Upserts one element by identity (method `update`).
  public func update(_ feed: CollectionFeed, element: JSONView) throws(FeedError) {
    startOperation()
    let mark = log.mark
    let state = feed.state
    try state.update(element, index: 0, at: tick(), &log)
    addStep(&state.step)
    evict(feed, state)
    finishSteps(on: feed, state, since: mark)
  }

  /// Upserts many elements, one after another, as one operation with one change.
  public func update(_ feed: CollectionFeed, elements: JSONView) throws(FeedError) {
    startOperation()
    let mark = log.mark
    do {
      for (index, element) in elements.elements.enumerated() {
        try feed.state.update(element, index: index, at: tick(), &log)
        addStep(&feed.state.step)
      }
    } catch {
      throw abandon(error, to: mark)
    }
    evict(feed, feed.state)
    finishSteps(on: feed, feed.state, since: mark)
  }

  /// Deletes the element with this identity; one that is not there is no change (method `delete`).
  public func delete(_ feed: CollectionFeed, id: JSONView) throws(FeedError) {
    startOperation()
    let mark = log.mark
    if let handle = try feed.state.find(id, index: 0, isID: true) { remove(handle, from: feed) }
    finishSteps(on: feed, feed.state, since: mark)
  }

  /// Deletes the elements with the identities of an array, as one operation.
  public func delete(_ feed: CollectionFeed, ids: JSONView) throws(FeedError) {
    startOperation()
    let mark = log.mark
    var handles: [UInt32] = []
    for (index, id) in ids.elements.enumerated() {
      if let handle = try feed.state.find(id, index: index, isID: true) { handles.append(handle) }
    }
    // One may be named twice.
    if handles.count > 1 { handles = Array(Set(handles)).sorted() }
    removeAll(handles, from: feed)
    finishSteps(on: feed, feed.state, since: mark)
  }

  /// Makes the collection hold exactly these elements, by identity (method `set`): first those that are not among them
  /// leave, then each is upserted in turn.
  public func set(_ feed: CollectionFeed, elements: JSONView) throws(FeedError) {
    startOperation()
    let mark = log.mark
    let state = feed.state
    do {
      var kept: Set<UInt32> = []
      for (index, element) in elements.elements.enumerated() {
        if let handle = try state.find(identityOf: element, index: index) { kept.insert(handle) }
      }
      var leaving: [UInt32] = []
      state.elements.forEach { if !kept.contains($0) { leaving.append($0) } }
      removeAll(leaving, from: feed)
      for (index, element) in elements.elements.enumerated() {
        try state.update(element, index: index, at: tick(), &log)
        addStep(&state.step)
      }
    } catch {
      throw abandon(error, to: mark)
    }
    evict(feed, feed.state)
    finishSteps(on: feed, feed.state, since: mark)
  }

  func remove(_ handle: UInt32, from feed: CollectionFeed) {
    feed.state.step.removeAll(keepingCapacity: true)
    feed.state.remove(handle, &log)
    addStep(&feed.state.step)
  }

  func removeAll(_ handles: [UInt32], from feed: CollectionFeed) {
    if handles.count == 1 { return remove(handles[0], from: feed) }
    feed.state.remove(handles, &log)
    addStep(&feed.state.step)
  }

  /// Undoes the operation under way.
  func abandon(_ error: FeedError, to mark: UndoLog.Mark) -> FeedError {
    log.undo(to: mark)
    shape.version &+= 1
    result.removeAll(keepingCapacity: true)
    _ = steps.finish()
    stepCount = 0
    return error
  }

  /// Composes the steps of an operation into `result`, without what turned out to be as it was.
  func finishSteps(on feed: Feed, _ store: RowStore, since mark: UndoLog.Mark) {
    if stepCount > 1 {
      result = store.simplify(steps.finish(), log, since: mark)
    }
    finishOperation(on: feed)
  }
}
