import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Methods about the definitions of feeds.
extension Engine {
  func feeds(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    // The rows of `$feeds` name the feeds in order.
    let names = try catalog.feed(named: FeedName.feeds).makeSnapshot(chargedTo: reply.session.snapshots)
    let peer = reply.session.peer
    let job = ListJob(of: self, for: reply) { out in
      out.append("\"revision\":", integer: catalog.revision)
      out.append(",\"feeds\":[")
    } _: { [unowned self] in
      // Both are valid until feeds change.
      var lists = SectionLists()
      var readable = access.readableFeeds(by: peer)
      return { [unowned self] out in
        names.next(max: 1) { row in
          guard let feed = catalog.feeds[Self.feedName(in: row)], readable.contains(feed) else { return }
          out.append(UInt8(ascii: "{"))
          appendDescription(of: feed, lists.keeps(feed) ? lists.sections(of: feed) : nil, to: &out)
          out.append(UInt8(ascii: "}"))
        } > 0
      }
    }
    start(job, for: reply, parameters)
  }

  /// The name in a row of `$feeds`, `{"feed":"inbox",…}`. Names have no escapes.
  private static func feedName(in row: Row) -> String {
    let start = #"{"feed":""#.utf8.count
    return String(decoding: row.text.dropFirst(start).prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
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

/// The facts about the daemon in the answer to `hello`, encoded once, because limits change seldom.
/// See `Protocol/methods/hello.md`.
struct Greeting {
  static let protocolVersion = 1

  private let beforeRevision: [UInt8]
  private let afterRevision: [UInt8]

  init(_ identity: ServerIdentity, _ limits: Limits) {
    var out = ByteBuffer()
    out.append("\"protocol\":", integer: Self.protocolVersion)
    out.append(",\"server\":", quoted: "feedd \(identity.version)")
    out.append(",\"epoch\":", quoted: identity.epoch)
    out.append(",\"revision\":")
    beforeRevision = Array(out.bytes)
    out.removeAll(keepingCapacity: true)
    out.append(",\"limits\":{")
    limits.appendMembers(to: &out)
    out.append("},\"capabilities\":{\"methods\":[")
    out.appendJSONStrings(Method.allCases.map(\.name).sorted())
    out.append("],\"kinds\":[")
    out.appendJSONStrings(FeedDefinition.kinds)
    out.append("],\"durability\":", quoted: identity.durability)
    out.append(UInt8(ascii: "}"))
    afterRevision = Array(out.bytes)
  }

  /// Appends the members of the answer.
  func append(revision: UInt64, to out: inout ByteBuffer) {
    beforeRevision.withUnsafeBytes { out.append($0) }
    out.append(integer: revision)
    afterRevision.withUnsafeBytes { out.append($0) }
  }
}

extension Engine {
  func hello(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    if let version = parameters.member("protocol"), version.int != Greeting.protocolVersion {
      throw Parameters.refuse("protocol", "must be 1, the only protocol this daemon speaks")
    }
    if let client = parameters.member("client") {
      reply.session.client.name = try Self.displayName(of: client)
    }
    try answer(reply) { out in
      status.greeting.append(revision: catalog.revision, to: &out)
      status.sharedLog?().append(to: &out)
    }
  }

  /// The maximum bytes of a client's name.
  private static let longestClientName = 256

  /// Returns a client's name for the log: a string, or the `name` of an object; at most 64 printable characters.
  /// - Throws: `invalidParams` for a name that is too long. It is not decoded.
  private static func displayName(of client: JSONView) throws(FeedError) -> String {
    let member: StaticString = client.kind == .object ? "client.name" : "client"
    guard let given = client.kind == .object ? client.member("name") : client, given.kind == .string else { return "" }
    guard let name = given.string(atMost: longestClientName) else {
      throw Parameters.refuse(member, "must be a name of at most \(longestClientName) bytes")
    }
    let printable = name.unicodeScalars.filter { !$0.properties.isWhitespace && $0.value >= 32 && $0.value != 127 }
    return String(printable.prefix(64).map(Character.init))
  }
}
