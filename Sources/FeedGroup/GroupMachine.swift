import FeedJSON
import FeedModel

/// A member of a group as a state machine: messages, answers and time in; messages and events out.
///
/// It follows the stream from the next message on (``StreamFollower``), decides the effect of each message (``MemberTable``), sends
/// the own messages until the stream shows that they had theirs (``OwnMessages``), and proposes marks and images (``Upkeep``). It
/// makes no system call, so a simulator can drive it. Times are those of a monotonic clock, in nanoseconds, unless they are the
/// stream's.
///
/// Invariant: events are in the order of the stream, and every batch given to `append` gets exactly one `ordered` or `failed`.
final class GroupMachine {
  private enum Reading {
    case on
    /// Nothing is read any more, because the daemon ends.
    case frozen
    /// The state of this member cannot be continued.
    case lost
  }

  /// What one member does for all.
  struct Duties: Equatable {
    /// The feeds of this host's configuration whose rows it proposes, if their databases are its own.
    var proposed: Set<String> = []
    /// The number of members that act before it.
    var rank = 0
  }

  /// Bytes of batches that wait for their execution, above which the stream is not read further.
  private static let maxBacklog = 32 << 20
  /// How often another origin of this member may join in so many nanoseconds.
  private static let maxReplacements = 5
  private static let replacementPause = 60 * second

  let settings: GroupSettings
  let inbox: String
  let identity: StreamIdentity
  private let transport: any GroupTransport
  private let report = GroupReport()
  private(set) var table: MemberTable
  private var follower: StreamFollower
  private var own: OwnMessages
  private var upkeep: Upkeep
  private var events: [LogEvent] = []
  private var reading = Reading.on
  private var hasLeft = false
  /// When other origins of this member joined lately.
  private var replacements: [UInt64] = []
  /// Counts the bytes of batches that wait for their execution.
  let counter = ByteCounter()

  init(
    _ settings: GroupSettings, _ identity: StreamIdentity, _ table: MemberTable, readingFrom next: UInt64,
    inbox: String, _ transport: any GroupTransport, now: UInt64, makeOrigin: @escaping () -> UInt64
  ) {
    (self.settings, self.identity, self.table) = (settings, identity, table)
    self.table.rules = identity.rules
    (self.inbox, self.transport) = (inbox, transport)
    follower = StreamFollower(settings, identity, from: next, inbox: inbox, transport, report, now: now)
    own = OwnMessages(settings, inbox: inbox, transport, makeOrigin: makeOrigin)
    upkeep = Upkeep(settings, position: table.position, now: now)
  }

  func takeEvents() -> [LogEvent] {
    defer { events.removeAll(keepingCapacity: true) }
    return events
  }

  /// Removes and returns lines for the daemon's log: whether each is a warning, and its text.
  func takeLines() -> [(isWarning: Bool, text: String)] { report.take() }

  /// Removes and returns what a mark among the events is for.
  func takePurpose(_ mark: UInt64) -> Upkeep.Purpose? { upkeep.takePurpose(mark) }

  /// Whether everything was read that was in the stream when this member began to follow it.
  var isCaughtUp: Bool { follower.firstEnd.map { table.position >= $0 } ?? false }
  /// Whether it has read what the stream had when the servers were last asked. One that has stood still would publish an image that is
  /// older than those of the others, in the place of one of them.
  private var isCurrent: Bool { unreachableSince == nil && follower.state.map { table.position >= $0.last } ?? false }
  var isConnected: Bool { follower.isConnected }
  var unreachableSince: UInt64? { follower.unreachableSince }
  /// The copies of the stream that the servers keep; nil if that is not known yet.
  var replicas: Int? { follower.state?.replicas }
  /// The name of the next image: not that of the newest one.
  var nextImageName: String { PublishedImage.names.first { $0 != table.image?.name } ?? PublishedImage.names[0] }
  var announcement: OwnMessages.Announcement { own.announcement }

  var duties: Duties {
    let configured = own.configured.map { Array($0.keys) } ?? []
    return Duties(proposed: table.proposed(of: configured, by: settings.member), rank: Int(rank))
  }

  /// The place of this member among all, so that one of them acts first.
  private var rank: UInt64 { UInt64(table.members.values.count { $0.member < settings.member }) }
  private var isBusy: Bool { counter.value > Self.maxBacklog }

  // MARK: The engine's side

  func append(_ batch: LogBatch, now: UInt64) {
    // Batches are refused in order: with others before it, this one waits for their end.
    if !own.has(.batch), let reason = reasonToRefuse(now) {
      events.append(.failed(from: batch.number, through: batch.number, reason: reason))
      return
    }
    own.add(batch, now: now)
    flush(now)
  }

  /// The reason why a batch is not even tried.
  private func reasonToRefuse(_ now: UInt64) -> String? {
    if reading == .lost { return "this member left the group's log because its state differs" }
    if hasLeft { return Self.leftText }
    if let since = follower.unreachableSince, now &- since >= settings.timeout { return unreachableText }
    return own.isJoined ? nil : own.refusalReason(now)
  }

  private static let leftText = "this member left the group; rejoin with: feedclient group join"

  private var unreachableText: String {
    "the log of group \(settings.name) is unreachable\(follower.reason.isEmpty ? "" : ": \(follower.reason)"); "
      + "start nats-server or check the network"
  }

  func didDigest(_ mark: UInt64, _ value: String, now: UInt64) {
    upkeep.didDigest(mark, value, now: now)
    send(.digest, "{\"mark\":\(mark),\"digest\":\"\(value)\"}", now)
  }

  /// An image of this host was written. One for all is published next.
  func didWriteImage(_ image: WrittenImage, now: UInt64) {
    upkeep.didWriteImage(image.position, bytes: image.bytes, isShared: image.isShared, now: now)
  }

  /// An image is written and published: everybody is told.
  /// - Parameter first: the place of its first chunk.
  func didPublishImage(_ image: PublishedImage, first: UInt64, now: UInt64) {
    upkeep.didPublishImage()
    note(
      "published an image of \(image.size) bytes that covers the log up to message \(image.position)", isWarning: false)
    send(
      .image,
      "{\"position\":\(image.position),\"from\":\(image.from),\"bytes\":\(image.size),\"name\":\"\(image.name)\","
        + "\"id\":\"\(image.id)\",\"chunks\":\(image.chunks),\"first\":\(first)}", now)
  }

  /// Sends a message of this member besides batches. After a leave it would have no effect.
  private func send(_ kind: GroupMessage.Kind, _ text: String, _ now: UInt64) {
    if hasLeft { return }
    own.add(kind, text)
    flush(now)
  }

  func didFailImage(now: UInt64) { upkeep.didFailImage(now: now) }
  func didFailToWriteImage(now: UInt64) { upkeep.didFailToWriteImage(now: now) }

  /// Tells the group which feeds the configuration of this host defines.
  func announce(_ feeds: [String: UInt32], number: Int, now: UInt64) {
    own.configure(feeds, number: number)
    flush(now)
  }

  /// Puts a mark for an image that is published behind what was read so far. A member that has left cannot tell the others of one, so
  /// its image is for this host alone.
  func requestImage() { add(upkeep.requestImage(table, isShared: !hasLeft)) }

  /// Reads nothing more, and puts a mark for the last image of this host, if it would cover more than the newest.
  func freeze() {
    if reading == .on { reading = .frozen }
    add(upkeep.requestLastImage(table))
  }

  /// Tells the group that this member ends.
  func leave(now: UInt64) {
    if hasLeft { return }
    hasLeft = true
    guard own.hasBegun else { return }
    own.add(.leave, "")
    flush(now)
  }

  func rejoin(now: UInt64) {
    // It would refuse the batches that are under way.
    guard hasLeft else { return }
    hasLeft = false
    fail("this member joins its group again", now)
  }

  func note(_ text: String, isWarning: Bool) { report.note(text, isWarning: isWarning) }
  private func add(_ mark: UInt64?) { if let mark { events.append(.mark(mark)) } }

  // MARK: The connection

  func didConnect(now: UInt64) {
    own.retry()
    follower.didConnect(now: now)
  }

  func didDisconnect(_ reason: String, now: UInt64) { follower.didDisconnect(reason, now: now) }

  func receive(_ input: GroupInput, now: UInt64) {
    if reading != .on { return }
    if input.subject == follower.subject {
      return handle(follower.deliver(input, isBusy: isBusy, now: now), input, now)
    }
    guard input.subject.hasPrefix("\(inbox).") else { return }
    let name = input.subject.dropFirst(inbox.count + 1)
    if name.hasPrefix("ack.") {
      didAcknowledge(input, UInt64(name.dropFirst(4)) ?? 0, now)
    } else if name == "bucket" {
      if isCaughtUp, let former = upkeep.checkBucket(input, table, rank: rank, now: now) { trim(behind: former) }
    } else if name.hasPrefix("audit.") {
      handle(follower.didCompare(input, UInt64(name.dropFirst(6)) ?? 0, table.records, now: now), input, now)
    } else if name == "info" {
      handle(follower.didAsk(input, table.records, now: now), input, now)
    } else if name.hasPrefix("consumer.") {
      handle(follower.didCreateConsumer(input, generation: UInt64(name.dropFirst(9)), now: now), input, now)
    }
  }

  private func handle(_ step: StreamFollower.Step, _ input: GroupInput, _ now: UInt64) {
    switch step {
    case .nothing: break
    case .message(let place): read(input, place, now)
    case .lost(let reason): lose(reason)
    case .agreed: upkeep.didAgree(rank: rank, now: now)
    case .begun:
      if !own.hasBegun && !hasLeft { own.begin() }
      flush(now)
    }
  }

  private func didAcknowledge(_ input: GroupInput, _ identity: UInt64, _ now: UInt64) {
    switch own.acknowledge(input, identity, now: now) {
    case true: follower.didHear(now)
    case false: fail(own.refusalReason(now) ?? "", refused: identity, now)
    case nil: break
    }
  }

  private func flush(_ now: UInt64) {
    guard follower.isFollowing, reading != .lost else { return }
    own.flush(now, after: table.records.mark, isNamed: follower.state?.isSafeInCluster ?? false)
  }

  /// Stops following: the state of this member cannot be continued.
  private func lose(_ reason: String) {
    if reading == .lost { return }
    reading = .lost
    follower.end()
    events.append(.lost(reason: "group \(settings.name): \(reason)"))
  }

  /// Refuses the batches that are not stored. Those that were sent may be stored later; they have no effect then.
  private func fail(_ reason: String, refused identity: UInt64? = nil, _ now: UInt64) {
    if let (batches, text) = own.abandon(reason, refused: identity) {
      events.append(.failed(from: batches.lowerBound, through: batches.upperBound, reason: text))
    }
    // What was given up may contain the leave, and messages that were sent before it need a new origin to have no effect later.
    if hasLeft { own.add(.leave, "") }
    flush(now)
  }

  private func didLeave() {
    guard let batches = own.didLeave() else { return }
    events.append(.failed(from: batches.lowerBound, through: batches.upperBound, reason: Self.leftText))
  }

  // MARK: The stream

  private func read(_ input: GroupInput, _ place: JetStream.Place, _ now: UInt64) {
    guard table.record(input.bytes, at: place.stream) else { return lose(StreamFollower.fork(place.stream)) }
    let message: GroupMessage
    let payload: UnsafeRawBufferPointer
    do throws(GroupMessage.Flaw) {
      (message, payload) = try GroupMessage.parse(input.bytes)
    } catch {
      return skip(place.stream, error)
    }
    let isOwn = message.origin == own.origin
    follower.compare(message, at: place.stream, table.records, now: now)
    if follower.beginDispute(table.records, now: now) { tell() }
    if message.number == 0 { return table.skip(place.stream) }
    let effect = table.receive(message, payload, sequence: place.stream, time: place.time)
    if case .none(let reason) = effect { return didSkip(message, reason, place, now) }
    let sent = isOwn ? own.resolve(through: message.number) : nil
    switch effect {
    case .none: break
    case .batch(let requests, let moment):
      upkeep.didRead(bytes: payload.count, now: now)
      if let batch = sent?.batch {
        events.append(.ordered(batch, at: Instant(nanoseconds: moment)))
      } else {
        hand(over: requests, payload, input.owner, place.stream, moment)
      }
      guard isCaughtUp else { break }
      if own.isJoined && !hasLeft { upkeep.proposeMark(table, rank: rank, now: now) }
      upkeep.proposeImage(table, rank: rank, now: now)
    case .part: break
    case .left: if isOwn { didLeave() }
    case .joined: didJoin(message, place, now)
    case .mark: add(upkeep.didMark(place.stream, table, isCaughtUp: isCaughtUp))
    case .digest: compareDigests(now)
    case .image: upkeep.didHearOfImage()
    case .configured: if sent != nil { own.didConfigure(nil, besides: table.configured(besides: settings.member)) }
    case .conflict(let feed, let host): didRefuse(message, isOwn: sent != nil, feed, host)
    }
  }

  /// Tells the other members what this one has read. The message has no other effect, so it is sent once.
  private func tell() {
    let message = GroupMessage(.mark, origin: own.origin, number: 0, time: 0, mark: table.records.mark)
    _ = transport.publish(
      settings.subject, reply: nil, identity: nil,
      message.encoded(UnsafeRawBufferPointer(start: nil, count: 0)))
  }

  /// A message that no member of this version can read: one of another program has no effect.
  private func skip(_ sequence: UInt64, _ flaw: GroupMessage.Flaw) {
    guard flaw == .foreign else {
      return lose("message \(sequence) of stream \(settings.stream) is of a newer feedd (\(flaw)); update this host")
    }
    table.skip(sequence)
    note(
      "message \(sequence) of stream \(settings.stream) is not of feedd and is skipped; find out who publishes to "
        + settings.subject, isWarning: true)
  }

  private func hand(
    over requests: [UInt8]?, _ payload: UnsafeRawBufferPointer, _ owner: AnyObject, _ number: UInt64, _ moment: UInt64
  ) {
    let held = requests.map { HeldFrames(copying: $0, counter) } ?? HeldFrames(payload, owner, counter)
    events.append(
      .received(
        LogBatch(number: number, at: Instant(nanoseconds: moment), revision: nil, frames: held.frames, owner: held)))
  }

  private func didJoin(_ message: GroupMessage, _ place: JetStream.Place, _ now: UInt64) {
    if message.origin == own.origin {
      own.didJoin(at: place.time, now: now)
      flush(now)
    } else if own.isJoined, !hasLeft, table.members[own.origin] == nil {
      // What a former process of this member had sent may arrive late, once.
      replacements = replacements.filter { now &- $0 < Self.replacementPause } + [now]
      if replacements.count > Self.maxReplacements { return lose(GroupLog.copiedName) }
      fail("this member joins its group again", now)
    }
  }

  private func didSkip(_ message: GroupMessage, _ reason: MemberTable.Skip, _ place: JetStream.Place, _ now: UInt64) {
    guard message.origin == own.origin else { return }
    switch reason {
    case .duplicate: return
    case .unknownOrigin: if own.isJoined { fail("this member joins its group again", now) }
    case .late, .gap, .invalid:
      own.renew(message, next: table.members[own.origin]?.next ?? 1, isLate: reason == .late, at: place.time, now: now)
    }
    flush(now)
  }

  private func didRefuse(_ message: GroupMessage, isOwn: Bool, _ feed: String, _ host: String) {
    if isOwn {
      let text = Self.conflictText(feed, settings.host, host)
      // Another host has configured the feed while this member had left.
      if own.announcement.isDecided { note(text, isWarning: true) }
      return own.didConfigure(text, besides: [])
    }
    guard host == settings.host, let other = table.members[message.origin]?.host else { return }
    note("\(Self.conflictText(feed, other, host)); that of \(other) was refused", isWarning: true)
  }

  /// The error for a feed that the configurations of two hosts define differently.
  private static func conflictText(_ feed: String, _ own: String, _ other: String) -> String {
    "feed \"\(feed)\" is defined differently by the configurations of the hosts \(own) and \(other); make them equal, or remove "
      + "one"
  }

  /// Removes what a member that begins with the image before the newest one does not need, once the servers have both. So two images
  /// exist, each with the messages behind it, and servers that lose the newest one lose nothing.
  private func trim(behind former: MemberTable.Image) {
    guard let first = follower.state?.first, first < former.from else { return }
    purge(settings.bucketStream, before: former.first)
    purge(settings.stream, before: former.from)
  }

  private func purge(_ stream: String, before sequence: UInt64) {
    // JetStream takes 1 for no limit at all.
    guard sequence > 1, sequence < .max else { return }
    transport.request(JetStream.purge(stream), reply: nil, "{\"seq\":\(sequence)}")
  }

  private func compareDigests(_ now: UInt64) {
    if let text = upkeep.divergence(table, rank: rank, now) { lose(text) }
  }

  // MARK: Time

  /// Does what is due. Returns the nanoseconds until it should be called again.
  func tick(_ now: UInt64) -> UInt64 {
    if reading != .on { return second }
    if let reason = own.overdue(now, unreachable: unreachableText) { fail(reason, now) }
    compareDigests(now)
    if follower.attend(isBusy: isBusy, now: now) { askForBucket() }
    audit(now)
    flush(now)
    if upkeep.takeRequest() { requestImage() }
    if !follower.isDisputed {
      let canPublish = own.isJoined && isCurrent && !upkeep.isDivergent(table)
      add(upkeep.dueImage(table, canPublish: canPublish, isCaughtUp: isCaughtUp, now: now))
    }
    if upkeep.isMarkDue(now), own.isJoined, !own.has(.mark) {
      own.add(.mark, "")
      flush(now)
    }
    var pause = second / 2
    if !own.isEmpty || follower.isWaiting { pause = second / 10 }
    if let deadline = own.deadline { pause = min(pause, deadline > now ? deadline - now : 0) }
    return max(pause, 1_000_000)
  }

  /// Finds out whether this member has read something else than the others, or than what the servers have now.
  private func audit(_ now: UInt64) {
    if follower.isFollowing, own.renewLost(after: table.position, follower.state, answeredAt: follower.answeredAt) {
      follower.dispute()
    }
    if follower.beginDispute(table.records, now: now) { tell() }
    if follower.isTellingDue(table.records, rank: rank, now: now) { tell() }
  }

  private func askForBucket() {
    if table.image == nil { return }
    transport.request(
      JetStream.streamInfo(settings.bucketStream), reply: "\(inbox).bucket",
      "{\"subjects_filter\":\"$O.\(settings.bucket).>\"}")
  }
}

extension GroupMachine {
  /// - Parameter wall: the time of day, in nanoseconds since 1970.
  func status(_ now: UInt64, wall: UInt64, server: String) -> GroupStatus {
    var status = GroupStatus()
    status.name = settings.name
    status.epoch = identity.epoch
    status.server = server
    if let since = unreachableSince { status.unreachable = (wall &- (now &- min(since, now)), follower.reason) }
    status.position = table.position
    status.waitingBytes = counter.value
    if let stream = follower.state {
      status.last = stream.last
      status.streamBytes = stream.bytes
      status.replicas = stream.replicas
      status.leader = stream.leader
    }
    let leading = table.digests?.leading
    status.members = table.members.sorted { ($0.value.host, $0.key) < ($1.value.host, $1.key) }.map { _, member in
      GroupStatus.Member(
        host: member.host, member: member.member, version: member.version, pid: member.pid, seen: member.seen,
        isSelf: member.member == settings.member,
        agrees: table.digests?.value(of: member.member).map { $0 == leading?.value })
    }
    status.image = table.image.map { ($0.position, $0.bytes, $0.moment, $0.host) }
    status.digest = table.digests.flatMap { digests in leading.map { (digests.mark, $0.value) } }
    return status
  }
}
