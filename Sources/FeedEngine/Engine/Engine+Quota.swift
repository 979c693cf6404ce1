import FeedModel

/// What the connections of a user hold together: bytes that wait for them, and bytes of frames that they have begun.
extension Engine {
  /// Counts what a session holds into its user's quota, if that has changed. O(1).
  @inline(__always) func recount(_ session: Session) {
    let holding = session.isClosing ? 0 : session.output.backlog &+ session.input.held.count &+ session.line.bytes
    if holding != session.counted { count(session, holding) }
  }

  private func count(_ session: Session, _ holding: Int) {
    guard !session.isRefused else { return }
    let uid = session.peer.uid
    let isMore = holding > session.counted
    users[uid, default: UserUsage()].holding += holding - session.counted
    session.counted = holding
    guard isMore, let usage = users[uid], usage.holding > limits.maxQueuePerUser else { return }
    if !overQuota.contains(uid) { overQuota.append(uid) }
  }

  /// Closes the largest holders of users that hold too much, until the rest is within the quota.
  func closeOverQuota() {
    if overQuota.isEmpty { return }
    for uid in overQuota {
      while let usage = users[uid], usage.holding > limits.maxQueuePerUser, let session = largestHolder(of: uid) {
        endWatches(of: session)
        session.output.dropWholeFrames()
        close(session, reason: "quota", message: excess(of: uid), level: .warning)
        recount(session)
      }
    }
    overQuota.removeAll()
  }

  /// O(connections).
  private func largestHolder(of uid: UInt32) -> Session? {
    var largest: Session?
    for case let session? in sessions where session.peer.uid == uid && session.counted > largest?.counted ?? 0 {
      largest = session
    }
    return largest
  }

  private func excess(of uid: UInt32) -> String {
    "The connections of uid \(uid) hold more than maxQueuePerUser (\(limits.maxQueuePerUser)) bytes, unread ones and half "
      + "frames together; read faster, watch less, or send frames to their end."
  }
}
