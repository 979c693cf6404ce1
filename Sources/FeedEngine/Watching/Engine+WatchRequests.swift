import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `watch`, `unwatch`, bookmarks and the end of a watch.
extension Engine {
  func watch(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try self.feed(parameters, of: session)
    let wantsSnapshot = try parameters.bool("initial", default: true)
    let throttle = try parameters.count("throttle", default: 0)
    let since = try since(parameters)
    let known = session.watches.first { $0.channel.feed === feed }
    if known == nil && session.watches.count >= limits.maxWatches {
      throw .limitExceeded(
        limit: "maxWatches", value: limits.maxWatches,
        reason: "unwatch a feed first, or start feedd with a larger --max-watches")
    }
    let resumed = since.map { $0.epoch == identity.epoch && canResume(feed, from: $0.revision) } ?? false
    let from = resumed ? since?.revision ?? feed.revision : feed.revision
    let isCurrent = from >= feed.revision
    try replyToWatch(request, feed, revision: isCurrent ? from : feed.revision, resumed: resumed, of: session)
    // A feed of that name that is gone may still have its end to tell; this watch starts over.
    for watch in session.watches where watch.channel.feed.name == feed.name { end(watch) }
    let channel = channel(of: feed)
    let watch = Watch(
      session: session, channel: channel, state: .live, revision: from,
      throttle: UInt64(min(throttle, 86_400_000)) * 1_000_000, now: now)
    watch.owesSelection = !feed.selection.isEmpty
    session.watches.append(watch)
    channel.add(watch)
    if resumed {
      if !isCurrent { fallBehind(watch) }
    } else if wantsSnapshot {
      beginSnapshot(watch, reset: false)
    }
    joinIfUpToDate(watch)
    tellSelection(watch)
  }

  private func replyToWatch(
    _ request: Request, _ feed: Feed, revision: UInt64, resumed: Bool, of session: Session
  ) throws(FeedError) {
    try reply(request, of: session) { out in
      out.append("\"feed\":")
      out.appendJSONString(feed.name)
      out.append(",\"epoch\":")
      out.appendJSONString(identity.epoch)
      out.append(",\"revision\":")
      out.append(integer: revision)
      out.append(resumed ? ",\"resumed\":true,\"sections\":" : ",\"resumed\":false,\"sections\":")
      out.appendSectionList(sections(of: feed))
    }
  }

  /// The position that `since` names; nil when there is none. A revision that can be none is beyond
  /// every reach.
  private func since(_ parameters: Parameters) throws(FeedError) -> (epoch: String, revision: UInt64)? {
    guard let since = parameters.member("since"), !since.isNull else { return nil }
    guard since.kind == .object, let epoch = since.member("epoch")?.string, let revision = since.member("revision")
    else {
      throw Parameters.refuse(
        "since", "must be an object with \"epoch\" and \"revision\" as watch or bookmark gave them")
    }
    guard revision.kind == .number else {
      throw Parameters.refuse("since", "must hold a \"revision\" that is a number")
    }
    return (epoch, revision.int.flatMap(UInt64.init(exactly:)) ?? .max)
  }

  private func canResume(_ feed: Feed, from revision: UInt64) -> Bool {
    guard revision <= catalog.revision else { return false }
    return feed.history?.reaches(revision) ?? (revision >= feed.revision)
  }

  func channel(of feed: Feed) -> FeedChannel {
    if let channel = feed.channel as? FeedChannel { return channel }
    let channel = FeedChannel(feed)
    feed.channel = channel
    feed.beginHistory()
    return channel
  }

  func unwatch(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try self.feed(parameters, of: session)
    if let watch = session.watches.first(where: { $0.channel.feed === feed }) { end(watch) }
    try reply(request, of: session) { _ in }
  }

  /// Ends a watch; nothing more is queued for it.
  func end(_ watch: Watch) {
    leaveStep(watch)
    watch.session.watches.removeAll { $0 === watch }
    remove(watch)
  }

  /// Takes a watch from its feed; the session's list is the caller's.
  func remove(_ watch: Watch) {
    watch.isEnded = true
    watch.state = .live
    watch.catchUp = nil
    watch.channel.remove(watch)
    pendingWatches.removeAll { $0 === watch }
    letGo(of: watch.channel)
  }

  /// A feed that is gone and its channel keep each other no longer once nobody is left to be told.
  func letGo(of channel: FeedChannel) {
    if channel.feed.isGone && channel.watchCount == 0 { channel.feed.channel = nil }
  }

  /// Tells a quiet watch how far the daemon is, so that it may resume from there.
  func sendBookmarkIfQuiet(_ watch: Watch) {
    guard watch.isLive, max(watch.toldCurrent, watch.revision) < catalog.revision, !watch.session.isBlocked,
      now.since(watch.lastTold) >= UInt64(limits.bookmarkInterval) * 1_000_000_000
    else { return }
    let start = answers.bytes.count
    let frame = answers.bytes.beginFrame()
    answers.bytes.beginNotification("bookmark")
    answers.bytes.append("\"feed\":")
    watch.channel.quotedName.withUnsafeBytes { answers.bytes.append($0) }
    answers.bytes.append(",\"epoch\":")
    answers.bytes.appendJSONString(identity.epoch)
    answers.bytes.append(",\"revision\":")
    answers.bytes.append(integer: watch.revision)
    answers.bytes.append(",\"current\":")
    answers.bytes.append(integer: catalog.revision)
    answers.bytes.endMessage()
    answers.bytes.endFrame(at: frame)
    queue(watch.session, answers, from: start)
    watch.lastTold = now
    watch.toldCurrent = catalog.revision
  }
}
