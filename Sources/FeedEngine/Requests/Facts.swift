import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Methods about the definitions of feeds.
extension Engine {
  func feeds(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let list = try catalog.feed(named: FeedName.feeds)
    let job = FeedsJob(list.makeSnapshot(chargedTo: reply.session.snapshots), in: self, for: reply) {
      [unowned self] feed, lists, out in
      appendDescription(of: feed, lists.keeps(feed) ? lists.sections(of: feed) : nil, to: &out)
    }
    start(job, for: reply, parameters)
  }

  func describe(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    try answer(reply) { out in
      appendDescription(of: feed, nil, to: &out)
      status.sharedLog?().append(to: &out)
    }
  }

  /// Appends `,"source":{"status":"ok","since":"…"}`, with `reason` unless all is well, and with the reason as `error` too if
  /// the source cannot be read.
  private func append(_ source: SourceStatus, to out: inout ByteBuffer) {
    out.append(",\"source\":{\"status\":", quoted: source.state.rawValue)
    if source.state == .error { out.append(",\"error\":", quoted: source.message) }
    if !source.message.isEmpty { out.append(",\"reason\":", quoted: source.message) }
    if !source.since.isEmpty { out.append(",\"since\":", quoted: source.since) }
    out.append(UInt8(ascii: "}"))
  }

  /// Appends `,"shows":[{"feed":"inbox","section":1}]`, with `type` for a content of a slots feed.
  private func append(_ shown: [(feed: String, as: Feed.ShownAs)], to out: inout ByteBuffer) {
    out.append(",\"shows\":[")
    for (place, child) in shown.enumerated() {
      out.append(place > 0 ? ",{\"feed\":" : "{\"feed\":", quoted: child.feed)
      switch child.as {
      case .section(let section):
        out.append(",\"section\":")
        if let section { out.append(integer: section) } else { out.append("null") }
      case .type(let type):
        out.append(",\"type\":", quoted: type)
      }
      out.append(UInt8(ascii: "}"))
    }
    out.append(UInt8(ascii: "]"))
  }

  /// Appends the members of the definition, then the current status of the feed.
  ///
  /// - Parameter content: the sections of the feed, if they are known.
  private func appendDescription(of feed: Feed, _ content: [any FeedSection]?, to out: inout ByteBuffer) {
    if let definition = feed.definition {
      definition.appendMembers(to: &out)
    } else {
      out.append("\"feed\":", quoted: feed.name)
      out.append(",\"kind\":", quoted: feed.kindName)
    }
    if let managed = feed.kind as? ManagedKind { append(managed.source, to: &out) }
    if let shown = feed.shownChildren { append(shown, to: &out) }
    out.append(",\"sections\":")
    if let content {
      out.appendSectionList(content)
      out.append(counts: content)
    } else {
      out.appendSectionList(of: feed)
      out.append(countsOf: feed)
    }
    out.append(",\"count\":", integer: content?.reduce(0) { $0 &+ $1.count } ?? feed.count)
    out.append(",\"revision\":", integer: feed.revision)
    out.append(",\"watchers\":", integer: feed.watching?.totalWatchCount ?? 0)
  }
}
