import FeedChange

/// From operations to one commit: undoing, composing, numbering, handing on to the feeds that show the rows, publishing.
extension Catalog {
  /// Starts a commit.
  public func begin(at now: Instant) {
    self.now = max(now, self.now)
    result.removeAll(keepingCapacity: true)
  }

  /// Undoes everything since `begin`.
  public func rollBack() {
    log.undo(to: .init(entries: 0, structures: 0))
    shape.version &+= 1
    log.finish()
    forgetCommit()
  }

  /// Makes everything since `begin` final under the next revision, and publishes it. A change of nothing is no commit.
  ///
  /// Returns whether there was a commit. `result` is still the change of the last operation afterwards.
  @discardableResult
  public func commit() -> Bool {
    if touched.isEmpty, marked.isEmpty, let feed = pending, log.structures.isEmpty {
      commit(theOnly: feed)
      return true
    }
    let structural = !log.structures.isEmpty
    let single = composeChanges()
    let changed = structural || touched.contains { !$0.net.isEmpty }
    if changed {
      revision &+= 1
      publishTouched()
    }
    if let single { swap(&single.net, &result) }
    log.finish()
    forgetCommit()
    return changed
  }

  /// The commit of one operation on one feed, as nearly all are: its change goes from hand to hand without any list.
  private func commit(theOnly feed: Feed) {
    revision &+= 1
    swap(&feed.net, &result)
    if !publishAlongRoute(feed) {
      feed.derive()
      publish(feed)
      if !touched.isEmpty {
        publishTouched()
        forgetCommit()
      }
    }
    swap(&feed.net, &result)
    pending = nil
    log.finish()
  }

  /// Prepares `result` for the next operation of this commit.
  func startOperation() {
    if let feed = pending {
      touch(feed)
      feed.accumulator.add(result)
      pending = nil
    }
    result.removeAll(keepingCapacity: true)
    stepCount = 0
  }

  /// The moment of the next step.
  func tick() -> Instant {
    now = now.adding(nanoseconds: 1)
    return now
  }

  /// Adds one step to the operation under way.
  func addStep(_ step: inout Change) {
    if step.isEmpty { return }
    stepCount &+= 1
    if stepCount == 1 { return swap(&step, &result) }
    if stepCount == 2 { steps.add(result) }
    steps.add(step)
  }

  /// Ends an operation whose change of `feed` is in `result`.
  func finishOperation(on feed: Feed) {
    if result.isEmpty { return }
    pending = feed
    if !result.onlyUpdates { shape.version &+= 1 }
  }

  func touch(_ feed: Feed) {
    if feed.isTouched { return }
    feed.isTouched = true
    touched.append(feed)
  }

  /// The rows of `feed`, whose turn comes later, changed as part of this commit.
  func hand(to feed: Feed) {
    if feed.isTouched { return }
    feed.isTouched = true
    let place = touched.lastIndex { $0.rank <= feed.rank }.map { $0 + 1 } ?? 0
    touched.insert(feed, at: place)
  }

  /// Gives every touched feed its composed change. Returns the feed that has borrowed `result`, if one operation was all.
  private func composeChanges() -> Feed? {
    if let feed = pending { touch(feed) }
    if let feed = pending, touched.count == 1, feed.accumulator.isEmpty {
      swap(&feed.net, &result)
      return feed
    }
    if let feed = pending { feed.accumulator.add(result) }
    for feed in touched {
      let composed = feed.accumulator.finish()
      // The rows of a collection that got other bins are others; they cannot be followed back.
      if let store = feed.rowStore, !rebinned.contains(where: { $0 === feed }) {
        feed.net = store.simplify(composed, log, since: .start)
      } else {
        feed.net = composed.normalizingMoves()
      }
    }
    return nil
  }

  /// Publishes the touched feeds, each after those whose rows it shows. More may be touched meanwhile.
  private func publishTouched() {
    if touched.count > 1 { touched.sort { $0.rank < $1.rank } }
    var next = 0
    while next < touched.count {
      let feed = touched[next]
      next += 1
      feed.derive()
      if !feed.net.isEmpty || feed.isGone { publish(feed) }
    }
  }

  private func publish(_ feed: Feed) {
    feed.propagate(in: self)
    announce(feed, feed, shift: 0)
    if feed.isGone { observer?.catalog(self, didEnd: feed) }
  }

  private func forgetCommit() {
    if !marked.isEmpty {
      for feed in marked { feed.mark = 0 }
      marked.removeAll(keepingCapacity: true)
    }
    for feed in touched {
      feed.isTouched = false
      feed.mark = 0
      feed.net.removeAll(keepingCapacity: true)
      if !feed.accumulator.isEmpty { _ = feed.accumulator.finish() }
    }
    touched.removeAll(keepingCapacity: true)
    if !rebinned.isEmpty { rebinned.removeAll() }
    pending = nil
  }
}
