import FeedChange
import FeedJSON

/// Operations of one step, and the steps of longer operations. Each call of ``CollectionKind`` makes one of them, because
/// each reading of its state counts a reference.
extension CollectionState {
  /// Upserts one element by identity, as one operation.
  func operate(on feed: FeedNumber, upserting element: JSONView, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    if maxRetained == .max && keyed == nil { commit.omitUndoIfPossible(rows: 2 &* bins.count) }
    let position = commit.log.position
    try update(element, index: 0, at: commit.tick(), commit.log)
    commit.addStep(of: self)
    if hasExcess { evictExcess(in: commit) }
    try commit.checkGrowth(of: self, since: position)
    commit.finishOperation(on: feed, self, since: position)
  }

  /// Deletes the element with an identity, as one operation. An unknown identity is no change.
  func operate(on feed: FeedNumber, deleting id: JSONView, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    if keyed == nil { commit.omitUndoIfPossible(rows: bins.count) }
    let position = commit.log.position
    if let handle = try find(id, index: 0, isID: true) { remove(handle, in: commit) }
    commit.finishOperation(on: feed, self, since: position)
  }

  /// Upserts the elements of an array in order.
  func upsert(_ elements: JSONView, in commit: Commit) throws(FeedError) {
    for (index, element) in elements.elements.enumerated() {
      self.index.makeRoom(commit.pace)
      try update(element, index: index, at: commit.tick(), commit.log)
      commit.addStep(of: self)
      commit.pace.spend(2 &+ bins.count)
    }
  }

  /// Removes elements from all their bins, and deletes them.
  func remove(_ handles: [UInt32], in commit: Commit) {
    if handles.count == 1 { return remove(handles[0], in: commit) }
    remove(handles, commit.log)
    commit.addStep(of: self)
  }

  private func remove(_ handle: UInt32, in commit: Commit) {
    beginStep()
    remove(handle, commit.log)
    commit.addStep(of: self)
  }

  /// Evicts elements beyond the retained number.
  func evictExcess(in commit: Commit) {
    let excess = excess
    if !excess.isEmpty { remove(excess, in: commit) }
  }
}
