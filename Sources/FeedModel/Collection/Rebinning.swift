import FeedChange
import FeedJSON

/// Copies the elements of a collection to a new definition, and computes the change from the old bins to the new ones.
///
/// Elements are copied in the order of arrival, so unsorted bins keep it. If several elements get the same identity under the
/// new definition, the last one is kept, and its rows. O(n log n).
struct Rebinning {
  let state: CollectionState
  let change: Change

  init(
    _ old: CollectionState, _ content: CollectionDefinition, feed: String, limits: Limits, seed: UInt64,
    _ request: UndoLog
  ) throws(FeedError) {
    state = CollectionState(feed: feed, definition: content, limits: limits, seed: seed)
    let successors = try Self.copyElements(of: old, to: state, request)
    change = SectionComparison(of: old, with: state, successors, request.pace).change
  }

  /// Copies the elements. Returns the handle in the new state for every old handle, or `ElementTable.none`.
  ///
  /// - Parameter request: the log of the commit, with the filter steps that its request may still take.
  private static func copyElements(
    of old: CollectionState, to state: CollectionState, _ request: UndoLog
  ) throws(FeedError) -> [UInt32] {
    let pace = request.pace
    // If this fails, the whole new state is discarded, so a log for one element at a time is enough.
    let log = UndoLog(pace: request.pace)
    log.allow(steps: request.stepsLeft)
    // The steps count although the new state may be refused.
    defer { request.didUse(steps: request.stepsLeft &- log.stepsLeft) }
    var scanner = JSONScanner(maxDepth: state.limits.maxDepth)
    /// The old handle of the element under each new handle.
    var sources: [UInt32] = []
    state.elements.discarded = old.elements.discarded
    let handles = old.elements.inOrderOfArrival(pace)
    var successors = [UInt32](repeating: ElementTable.none, count: old.elements.endHandle, pace)
    state.deferRows(count: handles.count, pace)
    sources.reserveCapacity(handles.count)
    for (place, handle) in handles.enumerated() {
      // Also for an element that no bin accepts.
      pace.spend(2 &+ state.bins.count / 4)
      let text = old.elements.text(of: handle)
      guard let view = try? scanner.scan(text.text, pace) else { continue }
      defer { log.finish() }
      try state.update(view, index: place, at: text.changedAt, log)
      guard let successor = try state.find(identityOf: view, index: place) else { continue }
      while sources.count <= Int(successor) { sources.append(ElementTable.none) }
      sources[Int(successor)] = handle
    }
    state.elements.sortByChange(pace)
    state.placeRows(pace)
    // Elements that the new definition does not retain.
    let excess = state.excess
    if !excess.isEmpty { state.remove(excess, log) }
    // Before the sections are compared: each element may have one of its own.
    if let keyed = state.keyed { try keyed.checkCount(state.limits) }
    _ = state.keyed?.endOperation()
    log.finish()
    for (successor, source) in sources.enumerated() where source != ElementTable.none {
      successors[Int(source)] = UInt32(successor)
      if successor & 63 == 0 { pace.spend() }
    }
    return successors
  }
}
