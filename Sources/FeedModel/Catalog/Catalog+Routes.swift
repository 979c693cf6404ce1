import FeedChange

/// Commits that only change rows of one feed, as nearly all do.
extension Catalog {
  /// Publishes the change of rows in `feed.net` and what it comes to in every feed that shows the rows. Returns false, with nothing
  /// done, where that cannot be told step by step.
  func publishAlongRoute(_ feed: Feed) -> Bool {
    guard feed.net.sectionsDeleted.isEmpty, feed.net.sectionsAdded.isEmpty, feed.mayFollowRoute(in: self) else {
      return false
    }
    let route = route(of: feed)
    guard route.isWhole else { return false }
    if feed.net.onlyUpdates && feed.net.updated.count == 1 { updatedElement = feed.element(at: feed.net.updated[0]) }
    announce(feed, feed, shift: 0)
    if !route.steps.isEmpty { follow(route, from: feed) }
    updatedElement = nil
    return true
  }

  private func route(of feed: Feed) -> Route {
    if let known = feed.route, known.version == log.structureChanges { return known }
    let route = Route(of: feed, version: log.structureChanges)
    feed.route = route
    return route
  }

  private func follow(_ route: Route, from base: Feed) {
    var dead: [Int] = []
    for (index, step) in route.steps.enumerated() {
      if !dead.isEmpty && dead.contains(step.source) {
        dead.append(index)
        continue
      }
      step.feed._withUnsafeGuaranteedRef { feed in
        if step.holder == index {
          derive(feed, step, route, base)
          if feed.net.isEmpty { return dead.append(index) }
        }
        if step.holder < 0 {
          announce(feed, base, shift: step.shift)
        } else {
          route.steps[step.holder].feed._withUnsafeGuaranteedRef { announce(feed, $0, shift: step.shift) }
        }
      }
    }
    for (index, step) in route.steps.enumerated() where step.holder == index {
      step.feed._withUnsafeGuaranteedRef { $0.net.removeAll(keepingCapacity: true) }
    }
  }

  /// Lets a feed work out its own change.
  private func derive(_ feed: Feed, _ step: Route.Step, _ route: Route, _ base: Feed) {
    let source = step.source < 0 ? nil : route.steps[step.source]
    let holder = source.flatMap { $0.holder < 0 ? nil : route.steps[$0.holder].feed.takeUnretainedValue() } ?? base
    feed.derive(from: holder, shift: source?.shift ?? 0, at: step.place)
  }

  /// Publishes a feed's change: the one in the `net` of `holder` with its sections shifted.
  func announce(_ feed: Feed, _ holder: Feed, shift: UInt32) {
    let from = feed.revision
    feed.revision = revision
    let isRemembered = feed.history?.append(&holder.net, shift: shift, to: revision, at: now) != nil
    if isRemembered && (feed.channel != nil || !observesOnlyChannels) || !feed.selection.isEmpty {
      // Taken out of the feed meanwhile: a change of its own is lent to others as it is, one in an object must be copied.
      var change = Change()
      if shift == 0 {
        swap(&change, &holder.net)
      } else {
        change.append(holder.net, before: Int(shift), after: Int(shift))
      }
      if isRemembered { observer?.catalog(self, didChange: feed, from: from, change: change) }
      if !feed.isGone, feed.carrySelection(across: change) { observer?.catalog(self, didCarrySelectionOf: feed) }
      if shift == 0 { swap(&change, &holder.net) }
    }
  }
}
