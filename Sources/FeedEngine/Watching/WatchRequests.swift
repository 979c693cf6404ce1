import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `watch` and `unwatch`, bookmarks, and the notification `selection`.
extension Engine {
  func watch(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let session = reply.session
    let feed = try self.feed(parameters, of: session)
    let wantsElements = try parameters.bool("elements", default: true)
    let wantsSnapshot = try parameters.bool("initial", default: true) && wantsElements
    let throttle = try parameters.count("throttle", default: 0)
    let spansSections = try parameters.bool("spanning", default: false)
    let wantsIdentities = try parameters.bool("ids", default: false)
    if wantsIdentities && !wantsElements {
      throw Parameters.refuse("ids", "must not be true with \"elements\": false, because counts have no identities")
    }
    let since = try since(parameters)
    // It may be of a former feed with this name, and not have sent its end yet. The new watch replaces it.
    let known = session.watches[feed.name]
    if known == nil { try checkRoomForWatch(of: session) }
    let resumed = since.map { $0.isOfThisEpoch && canResume(feed, from: $0.revision) } ?? false
    let from = resumed ? since?.revision ?? feed.revision : feed.revision
    let isCurrent = from >= feed.revision
    try answerWatch(reply, feed, revision: isCurrent ? from : feed.revision, resumed: resumed)
    if let known { end(known) }
    let rows = channel(of: feed)
    let channel = wantsElements && !wantsIdentities ? rows : rows.other(isCounting: !wantsElements)
    let watch = Watch(
      session: session, number: watches.nextNumber(), channel: channel, revision: from,
      throttle: UInt64(min(throttle, 86_400_000)) * 1_000_000,
      spansSections: spansSections, now: now)
    session.watches.add(watch)
    watches.begin(watch, bookmarkAt: now.adding(nanoseconds: bookmarkInterval))
    if resumed {
      if !isCurrent { fallBehind(watch) }
    } else if wantsSnapshot {
      beginSnapshot(watch, reset: false)
      wait(watch)
    }
    beginIdentities(watch)
    joinIfUpToDate(watch)
    tellSelection(watch)
    recount(session)
  }

  /// Refuses another watch if the connection, or its user, has as many as allowed. O(1).
  private func checkRoomForWatch(of session: Session) throws(FeedError) {
    if session.watches.count >= limits.maxWatches {
      throw limits.exceeded(\.maxWatches, "unwatch a feed first")
    }
    if watches.count(of: session.peer.uid) >= limits.maxWatchesPerUser {
      throw limits.exceeded(\.maxWatchesPerUser, "unwatch a feed on any connection of this user first")
    }
  }

  private func answerWatch(_ reply: Reply, _ feed: Feed, revision: UInt64, resumed: Bool) throws(FeedError) {
    try answer(reply) { out in
      out.append("\"feed\":", quoted: feed.name)
      out.append(",\"epoch\":", quoted: identity.epoch)
      out.append(",\"revision\":", integer: revision)
      out.append(resumed ? ",\"resumed\":true,\"sections\":" : ",\"resumed\":false,\"sections\":")
      out.appendSectionList(of: feed)
    }
  }

  /// Parses `since`; nil if it is absent. A number that is not a valid revision is out of reach of every history.
  private func since(_ parameters: Parameters) throws(FeedError) -> (isOfThisEpoch: Bool, revision: UInt64)? {
    guard let since = parameters.member("since"), !since.isNull else { return nil }
    guard since.kind == .object, let epoch = since.member("epoch"), epoch.kind == .string,
      let revision = since.member("revision")
    else {
      throw Parameters.refuse(
        "since", "must be an object with \"epoch\" and \"revision\" as watch or bookmark gave them")
    }
    guard revision.kind == .number else {
      throw Parameters.refuse("since", "must hold a \"revision\" that is a number")
    }
    // The epoch of this daemon is short; another one is not decoded.
    let isOfThisEpoch = epoch.text.count <= 2 + 6 * identity.epoch.utf8.count && epoch.string == identity.epoch
    return (isOfThisEpoch, revision.int.flatMap(UInt64.init(exactly:)) ?? .max)
  }

  private func canResume(_ feed: Feed, from revision: UInt64) -> Bool {
    guard revision <= catalog.revision else { return false }
    return feed.history?.reaches(revision) ?? (revision >= feed.revision)
  }

  func channel(of feed: Feed) -> FeedChannel {
    if let channel = feed.watching { return channel }
    let channel = FeedChannel(feed)
    feed.channel = channel
    feed.beginHistory()
    return channel
  }

  func unwatch(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try self.feed(parameters, of: reply.session)
    // Also that of a former feed with this name: its end would follow the answer.
    if let watch = reply.session.watches[feed.name] { end(watch) }
    try answer(reply) { _ in }
  }

  private var bookmarkInterval: UInt64 { UInt64(limits.bookmarkInterval) * 1_000_000_000 }

  /// Sends the daemon's revision to the watches without a notification during the interval, so that they can resume
  /// from there.
  ///
  /// Each watch is checked at most once an interval. If very many are due, the next turns send the rest.
  func sendBookmarks() {
    for watch in watches.takeDueBookmarks(now: now) {
      let isQuiet = now.since(watch.told.at) >= bookmarkInterval
      if isQuiet { sendBookmark(watch) }
      if let identities = watch.channel.identities { refresh(identities) }
      watches.addBookmark(watch, at: (isQuiet ? now : watch.told.at).adding(nanoseconds: bookmarkInterval))
    }
  }

  private func sendBookmark(_ watch: Watch) {
    guard watch.isLive, max(watch.told.revision, watch.revision) < catalog.revision, !watch.session.output.isBlocked
    else {
      return
    }
    let frame = answers.bytes.appendNotification("bookmark", of: watch.channel.feed.name) { out in
      out.append(",\"epoch\":", quoted: identity.epoch)
      out.append(",\"revision\":", integer: watch.revision)
      out.append(",\"current\":", integer: catalog.revision)
    }
    queue(watch.session, answers, from: frame.lowerBound, for: watch)
    watch.told.at = now
    watch.told.revision = catalog.revision
  }

  /// Sends the selection to every live watch, in order with its deltas. Other watches get it when they are live.
  func announceSelection(of feed: Feed) {
    guard let channel = feed.watching else { return }
    for channel in [channel] + channel.others {
      channel.selectionDidChange()
      if channel.isCounting { continue }
      for watch in channel.live {
        // A watch whose connection is full is told when it has caught up.
        if watch.session.output.exceeds(limits.maxQueue) { fallBehind(watch) } else { tellSelection(watch) }
      }
    }
  }

  /// Sends the selection to a live watch, unless the watcher already has it.
  func tellSelection(_ watch: Watch) {
    let channel = watch.channel
    // It falls behind if its connection has no room for the deltas of this turn, which lead to the coordinates of the selection.
    giveRest(watch)
    guard !channel.isCounting, watch.told.selection != channel.selectionVersion, watch.isLive, !watch.isEnded,
      !channel.feed.isGone
    else {
      return
    }
    watch.told.selection = channel.selectionVersion
    let (buffer, frame) = channel.selectionFrame()
    watches.didWrite(channel)
    giveAll(to: watch.session)
    watch.session.output.append(buffer, from: frame.lowerBound, to: frame.upperBound, watch: watch.number)
    outbox.list(watch.session)
  }
}
