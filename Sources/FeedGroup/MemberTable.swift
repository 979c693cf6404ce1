import FeedJSON

/// What the members of a group know of each other: a function of the stream alone, so it is the same on all of them.
///
/// Decides which messages have an effect. Messages of one origin have one in the order of their numbers, each once: a
/// duplicate, a message behind a gap, one of an origin that did not join or was replaced, and one that was stored too late
/// have none, on no member. An image of the state contains the table, so that a new member continues it.
struct MemberTable: Equatable {
  struct Member: Equatable {
    /// The random name of the member. It survives restarts with its state directory.
    let member: String
    let host: String
    let version: String
    let pid: Int
    /// The number of the next message that has an effect.
    var next: UInt64
    /// The beginning of a batch of which parts are missing, and the place of its first part.
    var parts: Parts?
    /// The moment of its newest message, by the stream's clock.
    var seen: UInt64
    /// The feeds that its configuration defines, and the checksums of their definitions.
    var configured: [String: UInt32] = [:]
  }

  struct Parts: Equatable {
    let sequence: UInt64
    let number: UInt64
    var bytes: [UInt8]
  }

  struct Image: Equatable {
    /// The last message that it covers.
    var position: UInt64
    /// The first message that is needed besides it, or besides another image of its name.
    var from: UInt64
    /// The member that published it; empty in a table of an older version.
    var member: String
    var host: String
    var bytes: Int
    var moment: UInt64
    /// The object in the bucket: its name, the id and number of its chunks.
    var name: String
    var id: String
    var chunks: Int
    /// The place of the first chunk in the bucket, of those of another image of its name too.
    var first: UInt64

    /// Keeps what an image of the same name needs: the bucket describes the one whose description came last, and the order of the
    /// log may be another one.
    mutating func keep(_ other: Image) { (from, first) = (min(from, other.from), min(first, other.first)) }
  }

  /// The digests that members computed at the newest mark.
  struct Digests: Equatable {
    struct Entry: Equatable {
      let member: String
      let host: String
      let value: String
    }

    let mark: UInt64
    /// In the order of the stream, at most one of each member.
    var entries: [Entry] = []

    /// The digest of most members; of several, the one that was published first.
    var leading: Entry? {
      var counts: [String: Int] = [:]
      for entry in entries { counts[entry.value, default: 0] += 1 }
      let most = counts.values.max() ?? 0
      return entries.first { counts[$0.value] == most }
    }

    func value(of member: String) -> String? { entries.first { $0.member == member }?.value }

    /// Whether an image was made behind `mark`, by a member that has the digest of most.
    func isRight(_ image: Image?, since mark: UInt64) -> Bool {
      guard let image, let leading, image.position >= mark else { return false }
      return value(of: image.member) == leading.value
    }
  }

  enum Effect {
    /// A batch is complete: the requests of several messages; nil for the payload of this one.
    case batch([UInt8]?, at: UInt64)
    case part, joined, left, mark, digest, image, configured
    /// The configurations of two members define a feed differently: the later one is not accepted.
    case conflict(feed: String, host: String)
    case none(Skip)
  }

  enum Skip: Equatable {
    case duplicate, gap, unknownOrigin, late, invalid
  }

  private(set) var members: [UInt64: Member] = [:]
  /// The last message that was looked at.
  private(set) var position: UInt64 = 0
  private(set) var records = LogRecords()
  /// The moment of the newest batch. It never decreases.
  private(set) var moment: UInt64 = 0
  private(set) var batchesSinceMark = 0
  private(set) var bytesSinceImage = 0
  private(set) var image: Image?
  /// The newest image of the other name.
  private(set) var formerImage: Image?
  private(set) var digests: Digests?
  /// The place of the newest mark in the stream.
  private(set) var mark: UInt64 = 0
  /// The version of the rules that the stream names; nil in a table of an older version. A member that begins cut off needs it.
  var rules: Int?

  /// The maximum bytes of a batch. A single request may be as long as a frame.
  private static let maxBatch = 1 << 30
  /// Nanoseconds after which a silent member is forgotten when another one joins.
  private static let patience: UInt64 = 7 * 86_400 * 1_000_000_000

  /// The first message that is needed besides the image that this table was read from, until the messages up to its position were
  /// read again; nil if none is.
  private(set) var needed: UInt64?
  /// The first message that a member with an image of this table needs.
  var firstNeeded: UInt64 { needed ?? members.values.compactMap { $0.parts?.sequence }.min() ?? position &+ 1 }

  /// The origin that a member last joined as.
  func origin(of member: String) -> UInt64? { members.first { $0.value.member == member }?.key }

  /// Records a message without effect.
  mutating func skip(_ sequence: UInt64) {
    if sequence >= position { needed = nil }
    position = max(position, sequence)
  }

  /// Records the checksum of the message that is looked at next. Returns false if it was read before and was another one.
  mutating func record(_ bytes: UnsafeRawBufferPointer, at sequence: UInt64) -> Bool {
    records.add(sequence, GroupMessage.checksum(bytes))
  }

  /// Returns the effect of a message.
  /// - Parameter time: when the stream stored it, in nanoseconds since 1970.
  mutating func receive(
    _ message: GroupMessage, _ payload: UnsafeRawBufferPointer, sequence: UInt64, time: UInt64
  ) -> Effect {
    // Parts of batches that an image begins with are read again, and nothing else before its position.
    let isBefore = sequence <= position
    skip(sequence)
    if message.kind == .join && !isBefore { return join(message, payload, time) }
    guard let next = members[message.origin]?.next else { return .none(.unknownOrigin) }
    if message.number != next { return .none(message.number < next ? .duplicate : .gap) }
    if message.deadline != 0 && time > message.deadline { return .none(.late) }
    if isBefore && (message.kind != .batch || message.isLast) { return .none(.invalid) }
    // Taken out, so that the bytes of its parts are not copied.
    guard var member = members.removeValue(forKey: message.origin) else { return .none(.unknownOrigin) }
    defer { if message.kind != .leave { members[message.origin] = member } }
    member.next += 1
    member.seen = max(member.seen, time)
    bytesSinceImage += payload.count
    switch message.kind {
    case .batch: return receive(message, payload, sequence, &member)
    case .join: return .none(.invalid)
    case .leave: return .left
    case .mark:
      batchesSinceMark = 0
      mark = sequence
      return .mark
    case .digest: return receiveDigest(payload, member)
    case .image:
      guard let image = Image(JSONObject(payload), member: member.member, host: member.host, moment: time) else {
        return .none(.invalid)
      }
      add(image)
      return .image
    case .configured:
      let feeds = JSONObject(payload)?.checksums("feeds") ?? [:]
      if let (feed, host) = conflict(of: feeds, of: member.member) { return .conflict(feed: feed, host: host) }
      member.configured = feeds
      return .configured
    }
  }

  private mutating func receive(
    _ message: GroupMessage, _ payload: UnsafeRawBufferPointer, _ sequence: UInt64, _ member: inout Member
  ) -> Effect {
    guard message.isLast else {
      var parts = member.parts ?? Parts(sequence: sequence, number: message.number, bytes: [])
      member.parts = nil
      if parts.bytes.count + payload.count <= Self.maxBatch { parts.bytes.append(contentsOf: payload) }
      member.parts = parts
      return .part
    }
    moment = max(moment, message.time)
    batchesSinceMark += 1
    guard var parts = member.parts else { return .batch(nil, at: moment) }
    member.parts = nil
    parts.bytes.append(contentsOf: payload)
    return .batch(parts.bytes, at: moment)
  }

  private mutating func join(_ message: GroupMessage, _ payload: UnsafeRawBufferPointer, _ time: UInt64) -> Effect {
    guard message.number == 1, members[message.origin] == nil else { return .none(.duplicate) }
    guard let facts = JSONObject(payload), let member = facts.string("member"), let host = facts.string("host") else {
      return .none(.invalid)
    }
    // What a member has configured counts until it says something else.
    let configured = origin(of: member).flatMap { members.removeValue(forKey: $0)?.configured } ?? [:]
    for (origin, other) in members where other.seen &+ Self.patience < time { members[origin] = nil }
    members[message.origin] = Member(
      member: member, host: host, version: facts.string("version") ?? "", pid: facts.int("pid") ?? 0, next: 2,
      parts: nil, seen: time, configured: configured)
    return .joined
  }

  private mutating func receiveDigest(_ payload: UnsafeRawBufferPointer, _ member: Member) -> Effect {
    guard let facts = JSONObject(payload), let mark = facts.unsigned("mark"), let value = facts.string("digest") else {
      return .none(.invalid)
    }
    if digests.map({ $0.mark < mark }) ?? true { digests = Digests(mark: mark) }
    if digests?.mark == mark, digests?.value(of: member.member) == nil {
      digests?.entries.append(Digests.Entry(member: member.member, host: member.host, value: value))
    }
    return .digest
  }

  /// Records an image. One that another member published at the same time has the same name.
  private mutating func add(_ image: Image) {
    guard image.position >= self.image?.position ?? 0 else {
      if image.name == self.image?.name { self.image?.keep(image) } else { formerImage?.keep(image) }
      return
    }
    let other = self.image
    self.image = image
    if let other, other.name == image.name { self.image?.keep(other) } else { formerImage = other }
    bytesSinceImage = 0
  }

  /// The feeds of `feeds` whose rows a member proposes if their databases are its own: those that no member before it configures.
  func proposed(of feeds: some Sequence<String>, by member: String) -> Set<String> {
    let others = members.values.filter { $0.member < member }
    return Set(feeds.filter { feed in !others.contains { $0.configured[feed] != nil } })
  }

  /// The feeds that a member configures.
  func configured(by member: String) -> Set<String> {
    origin(of: member).flatMap { members[$0] }.map { Set($0.configured.keys) } ?? []
  }

  /// The feeds that other members than `member` configure.
  func configured(besides member: String) -> Set<String> {
    Set(members.values.lazy.filter { $0.member != member }.flatMap(\.configured.keys))
  }

  /// A feed that the configuration of another host defines otherwise than `feeds` of a member, and that host.
  func conflict(of feeds: [String: UInt32], of member: String) -> (feed: String, host: String)? {
    for other in members.values.sorted(by: { $0.host < $1.host }) where other.member != member {
      for (feed, checksum) in feeds.sorted(by: { $0.key < $1.key }) {
        if let theirs = other.configured[feed], theirs != checksum { return (feed, other.host) }
      }
    }
    return nil
  }
}

extension MemberTable.Image {
  init?(_ facts: JSONObject?, member: String, host: String, moment: UInt64) {
    guard let facts, let position = facts.unsigned("position"), let from = facts.unsigned("from"),
      let name = facts.string("name"), let id = facts.string("id"), let chunks = facts.int("chunks"),
      let first = facts.unsigned("first")
    else { return nil }
    self.init(
      position: position, from: from, member: member, host: host, bytes: facts.int("bytes") ?? 0, moment: moment,
      name: name, id: id, chunks: chunks, first: first)
  }

  init?(_ facts: JSONObject) {
    self.init(
      facts, member: facts.string("member") ?? "", host: facts.string("host") ?? "",
      moment: facts.unsigned("moment") ?? 0)
  }

  fileprivate var text: String {
    "{\"position\":\(position),\"from\":\(from),\"bytes\":\(bytes),\"moment\":\(moment),"
      + "\"member\":\(member.quotedAsJSON),\"host\":\(host.quotedAsJSON),"
      + "\"name\":\(name.quotedAsJSON),\"id\":\(id.quotedAsJSON),\"chunks\":\(chunks),\"first\":\(first)}"
  }
}

extension MemberTable.Member {
  fileprivate func text(_ origin: UInt64) -> String {
    "{\"origin\":\"\(String(origin, radix: 16))\",\"member\":\(member.quotedAsJSON),\"host\":\(host.quotedAsJSON),"
      + "\"version\":\(version.quotedAsJSON),\"pid\":\(pid),\"next\":\(parts?.number ?? next),\"seen\":\(seen),"
      + "\"configured\":{\(configured.membersAsJSON)}}"
  }
}

// MARK: - In an image

extension MemberTable {
  /// The table as JSON. Parts of batches are not contained: they are read again from the stream.
  var text: String {
    var text = "{\"position\":\(position)"
    if records.mark != nil { text += ",\"tail\":\(records.text)" }
    text += ",\"from\":\(firstNeeded),\"moment\":\(moment),\"batchesSinceMark\":\(batchesSinceMark),\"mark\":\(mark)"
    if let rules { text += ",\"rules\":\(rules)" }
    if let image { text += ",\"image\":\(image.text)" }
    if let formerImage { text += ",\"formerImage\":\(formerImage.text)" }
    let members = members.sorted { $0.key < $1.key }.map { origin, member in member.text(origin) }
    return text + ",\"members\":[\(members.joined(separator: ","))]}"
  }

  /// Parses what `text` returns; nil if it is invalid.
  init?(text: String) {
    guard let facts = JSONObject(text), let position = facts.unsigned("position"), let moment = facts.unsigned("moment")
    else { return nil }
    (self.position, self.moment) = (position, moment)
    records = facts.object("tail").flatMap(LogRecords.init) ?? LogRecords()
    needed = facts.unsigned("from")
    batchesSinceMark = facts.int("batchesSinceMark") ?? 0
    mark = facts.unsigned("mark") ?? 0
    rules = facts.int("rules")
    image = facts.object("image").flatMap(Image.init)
    formerImage = facts.object("formerImage").flatMap(Image.init)
    for facts in facts.objects("members") {
      guard let origin = facts.string("origin").flatMap({ UInt64($0, radix: 16) }), let member = facts.string("member"),
        let host = facts.string("host"), let next = facts.unsigned("next")
      else { return nil }
      members[origin] = Member(
        member: member, host: host, version: facts.string("version") ?? "", pid: facts.int("pid") ?? 0, next: next,
        parts: nil, seen: facts.unsigned("seen") ?? 0,
        configured: facts.checksums("configured"))
    }
  }
}
