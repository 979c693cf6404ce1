import FeedJSON

extension Follower {
  /// Takes a message into account and gives it to the handler.
  func take(_ message: Message, _ handle: Handler) throws(ClientError) -> Verdict {
    switch message {
    // An answer without an id says that what was sent could not be read at all.
    case .response(let id, let result) where id == pendingID || id == 0:
      pendingID = nil
      return try takeAnswer(result, handle)
    case .response(let id, let result):
      return try handle(.response(id: id, result))
    case .notification(let notification):
      guard notification.kind == .bye || notification.concerns(watcher.options.feed) else { return .proceed }
      guard watcher.isWatching || notification.kind == .bye else { return .proceed }
      let verdict = try handle(.notification(notification, try record(notification)))
      if notification.endsFeed { try perform(watcher.ended(), handle) }
      return verdict
    }
  }

  /// The answer to `hello` or `watch`.
  private func takeAnswer(
    _ result: Result<JSONView, RemoteError>, _ handle: Handler
  ) throws(ClientError) -> Verdict {
    switch result {
    case .failure(let error):
      try perform(watcher.refused(error), cause: .refused(error), handle)
    case .success(let view) where watcher.isGreeting:
      _ = try reading { () throws(MalformedMessage) in try ServerHello(view) }
      try perform(watcher.greeted(), handle)
    case .success(let view):
      return try begin(try reading { () throws(MalformedMessage) in try WatchStart(view) }, handle)
    }
    return .proceed
  }

  /// Brings progress and mirror up to date.
  /// - Returns: the delta that the mirror has taken in.
  private func record(_ notification: Notification) throws(ClientError) -> Delta? {
    let params = notification.params
    switch notification.kind {
    case .snapshot:
      let reader = MemberReader(object: params, place: "snapshot")
      let revision = try reading { () throws(MalformedMessage) in try reader.revision("revision") }
      try checking { () throws(FeedFault) in
        try watcher.took(snapshot: revision, isReset: reader.flag("reset"), isLast: reader.flag("last"))
      }
      if keepsMirror {
        try add(try reading { () throws(MalformedMessage) in try SnapshotPart(params) })
      }
    case .delta:
      let reader = MemberReader(object: params, place: "delta")
      let from = try reading { () throws(MalformedMessage) in try reader.revision("from") }
      let revision = try reading { () throws(MalformedMessage) in try reader.revision("revision") }
      try checking { () throws(FeedFault) in try watcher.took(deltaFrom: from, to: revision) }
      guard mirror != nil else { return nil }
      let delta = try reading { () throws(MalformedMessage) in try Delta(params) }
      try checking { () throws(FeedFault) in try mirror?.apply(delta) }
      return delta
    case .bookmark:
      let bookmark = try reading { () throws(MalformedMessage) in try Bookmark(params) }
      try checking { () throws(FeedFault) in
        try watcher.took(bookmark)
        try mirror?.apply(bookmark)
      }
    case .selection:
      guard mirror != nil else { return nil }
      let selection = try reading { () throws(MalformedMessage) in try Selection(params) }
      try checking { () throws(FeedFault) in try mirror?.apply(selection) }
    case .bye, .other: break
    }
    return nil
  }

  private func add(_ part: SnapshotPart) throws(ClientError) {
    if mirror == nil, let sections = part.resetSections, let progress = watcher.progress {
      // Going on from an earlier process there were no rows; now the daemon sends them all.
      mirror = Mirror(
        WatchStart(
          feed: part.feed, epoch: progress.epoch, revision: part.revision, resumed: false, sections: sections))
    }
    try checking { () throws(FeedFault) in _ = try mirror?.apply(part) }
  }

  private func reading<Value>(_ read: () throws(MalformedMessage) -> Value) throws(ClientError) -> Value {
    do throws(MalformedMessage) { return try read() } catch { throw .malformed(error) }
  }

  private func checking(_ check: () throws(FeedFault) -> Void) throws(ClientError) {
    do throws(FeedFault) { try check() } catch { throw .fault(error) }
  }
}
