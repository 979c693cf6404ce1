/// Makes updates of what a follower tells, one at a time.
struct FeedCourse {
  private var isInterrupted = false

  /// What has happened since the last call; nil when there is nothing yet.
  mutating func next(of follower: Follower) throws(ClientError) -> FeedUpdate? {
    var cause: FeedUpdate.Cause?
    try follower.advance { event throws(ClientError) in
      cause = self.cause(of: event)
      return cause == nil ? .proceed : .pause
    }
    return cause.map { FeedUpdate(cause: $0, mirror: follower.mirror.flatMap { $0.isShown ? $0 : nil }) }
  }

  private mutating func cause(of event: Follower.Event) -> FeedUpdate.Cause? {
    switch event {
    case .waiting(let reason):
      // Said once; that the next attempts fail as well is no news.
      defer { isInterrupted = true }
      return isInterrupted ? nil : .interrupted(reason)
    case .started(let start):
      defer { isInterrupted = false }
      return isInterrupted && start.resumed ? .resumed : nil
    case .notification(let notification, _) where notification.kind == .snapshot:
      return notification.params.member("last")?.bool == true ? .snapshot : nil
    case .notification(let notification, _) where notification.kind == .selection:
      return .selection
    case .notification(_, let delta?):
      return .delta(delta)
    case .notification, .response:
      return nil
    }
  }
}
