import FeedChange
import FeedQuery

/// Redefining a feed that is there: it keeps what it holds.
extension Catalog {
  /// Gives `feed` another definition of the same kind. Leaves the change of its rows in `result`.
  func redefine(_ feed: Feed, _ definition: FeedDefinition) throws(FeedError) {
    let (behaviours, given) = (feed.behaviours, feed.given)
    switch (feed, definition.content) {
    case (let feed as CollectionFeed, .collection(let content)):
      if feed.content != content { try rebin(feed, content) }
    case (let feed as ListFeed, .list(let list)) where list.shape == feed.shape:
      try retype(feed, list.type)
    case (let feed as ComposedFeed, .composed(let names)):
      let children = try resolve(names)
      try checkChildren(children, of: feed, named: feed.name)
      try checkGrowth(of: feed, named: feed.name, children: children, showing: children)
      restructure(feed) { feed.adopt(children) }
    case (let feed as SegmentedFeed, .segmented(let names, let current)):
      let children = try resolve(names)
      try checkChildren(children, of: feed, named: feed.name)
      let shown = SegmentedFeed.shown(children, current)
      try checkGrowth(of: feed, named: feed.name, children: children, showing: shown)
      restructure(feed) {
        feed.current = current
        feed.adopt(children)
      }
    case (let feed as SlotsFeed, .slots(let slots)):
      if feed.plan.definition != slots { replan(feed, try plan(slots, for: feed, named: feed.name)) }
    case (let feed as ManagedFeed, .managed(let managed)): redefine(feed, managed)
    default:
      throw .definitionConflict(
        feed: definition.name,
        reason: "its kind is \(feed.kind); undefine it before you define it as \(definition.kind)")
    }
    feed.behaviours = definition.behaviours
    feed.given = definition
    log.append(undo: {
      feed.behaviours = behaviours
      feed.given = given
    })
  }

  private func rebin(_ feed: CollectionFeed, _ content: CollectionDefinition) throws(FeedError) {
    for bin in feed.binFeeds where !content.bins.contains(where: { $0.name == bin.bin }) { try checkNoParents(bin) }
    try checkParents(of: feed, sections: max(1, content.bins.count) - feed.sectionCount)
    let rebinning = try Rebinning(feed, content, limits: limits, seed: seed)
    result = rebinning.change
    rebinned.append(feed)
    let (state, bins, gone) = (feed.state, feed.binFeeds, feed.goneBins)
    rebinning.install(in: feed, revision: revision &+ 1)
    updateExpiring()
    log.append(undo: { [unowned self] in
      feed.state = state
      feed.binFeeds = bins
      feed.goneBins = gone
      for (index, bin) in bins.enumerated() {
        bin.index = index
        bin.isGone = false
      }
      feed.structureDidChange()
      rebinned.removeLast()
      updateExpiring()
    })
    finishOperation(on: feed)
  }

  private func replan(_ feed: SlotsFeed, _ plan: SlotsFeed.Plan) {
    let (before, count) = (feed.plan, feed.section(at: 0).count)
    let wasReplanned = feed.isReplanned
    feed.adopt(plan)
    feed.isReplanned = true
    result = feed.wholeChange(from: count)
    log.append(undo: {
      feed.adopt(before)
      feed.isReplanned = wasReplanned
    })
    finishOperation(on: feed)
    touch(feed)
  }

  /// Looks for types elsewhere in the elements of a list: rows whose type becomes another are updated.
  private func retype(_ feed: ListFeed, _ type: SingularPath?) throws(FeedError) {
    let state = feed.state
    guard state.type?.text != type?.text else { return }
    let (before, mark) = (state.type, log.mark)
    state.type = type
    log.append(undo: { state.type = before })
    do throws(FeedError) {
      for row in 0..<state.rows.count {
        if try state.retype(at: row, &log) { result.updated.append(IndexPath(section: 0, row: UInt32(row))) }
      }
    } catch {
      throw abandon(error, to: mark)
    }
    finishOperation(on: feed)
  }
}
