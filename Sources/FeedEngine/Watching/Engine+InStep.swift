import FeedModel

/// Watches in step: what the commits of a turn made for them is queued as one piece.
///
/// A commit costs the same however many watch. Whatever else is queued to a connection comes behind what was made for its
/// watches before, see `queue`.
extension Engine {
  /// Lets a watch that has everything, and need not wait for its throttle, have the deltas that all have.
  func joinIfUpToDate(_ watch: Watch) {
    let revision = watch.channel.feed.revision
    guard watch.isLive, !watch.isEnded, !watch.isInStep, watch.throttle == 0, watch.queuedRevision == revision,
      watch.queuedPosition == revision
    else { return }
    watch.channel.join(watch)
  }

  /// Gives a watch what was made for it so far, and takes it out of step.
  func leaveStep(_ watch: Watch) {
    if watch.isInStep { give(watch) }
    if watch.isInStep { watch.channel.leave(watch) }
  }

  /// Gives every watch what was made for it in this turn.
  func giveAll() {
    for channel in dirtyChannels {
      for watch in channel.inStep { give(watch) }
    }
  }

  /// Gives the watches of one connection what was made for them so far.
  func giveAll(to session: Session) {
    if session.givenDeltas == madeDeltas || session.watches.isEmpty { return }
    session.givenDeltas = madeDeltas
    for watch in session.watches where watch.isInStep { give(watch) }
  }

  /// Queues what was made for a watch in step. It falls behind instead when its connection holds too much already.
  private func give(_ watch: Watch) {
    let channel = watch.channel
    let end = channel.buffer.bytes.count
    if watch.given == end { return }
    let session = watch.session
    if session.output.backlog > limits.maxQueue {
      channel.leave(watch)
      return fallBehind(watch)
    }
    session.output.append(channel.buffer, from: watch.given, to: end)
    markDirty(session)
    watch.given = end
    watch.queuedRevision = channel.feed.revision
    watch.queuedPosition = channel.feed.revision
    watch.lastTold = now
  }
}
