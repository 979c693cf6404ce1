import FeedJSON
import FeedModel

/// What a member sends.
protocol GroupTransport: AnyObject {
  /// Sends a message. Returns the reason why it was not sent; nil if it was, which does not mean that it arrives.
  func publish(_ subject: String, reply: String?, identity: String?, rollup: String?, _ bytes: [UInt8]) -> String?
  /// Receives what is sent to a subject, in place of the one of the call before. It is not below the inbox: the servers deliver
  /// only to the exact subject of a subscription.
  func follow(_ subject: String)
}

/// A member of a group as a state machine: messages, answers and time in; messages and events out.
///
/// It follows the stream from the next message on, decides the effect of each message (``MemberTable``), and sends the own
/// batches until the stream shows that they had theirs. It makes no system call, so a simulator can drive it. Times are those
/// of a monotonic clock, in nanoseconds, unless they are the stream's.
///
/// Invariant: events are in the order of the stream, and every batch given to `append` gets exactly one `ordered` or `failed`.
final class GroupMachine {
  /// A message that the stream delivered or that answers this member.
  struct Input {
    let subject: String
    let reply: String?
    let bytes: UnsafeRawBufferPointer
    /// The headers `Status`, `Nats-Last-Consumer` and `Nats-Consumer-Stalled` of a message without bytes.
    var status: String?
    var lastConsumer: UInt64?
    var stalled: String?
    /// What keeps `bytes` alive.
    let owner: AnyObject
  }

  /// What a mark is for.
  enum Purpose {
    case digest(mark: UInt64)
    /// An image, with the table of the members at that place; published if `isShared`.
    case image(MemberTable, isShared: Bool)
  }

  private enum Following: Equatable {
    case idle(retryAt: UInt64)
    /// Asked for the state of the stream.
    case asking(at: UInt64)
    /// Asked for a consumer.
    case creating(at: UInt64)
    case following
  }

  private static let second: UInt64 = 1_000_000_000
  /// Nanoseconds without an answer after which a request is repeated, and without a message after which a consumer is replaced.
  private static let patience = second
  private static let silence = 2 * second
  /// Nanoseconds between two questions for the state of the stream.
  private static let infoPause = 2 * second
  /// Nanoseconds that a leader of the stream may take to find its end.
  private static let leaderPatience = 30 * second
  /// Nanoseconds between two images of a busy group.
  private static let imagePause = 20 * second
  /// The time before its deadline after which a message has no effect, so that the news of one in time arrives in time.
  private static let margin = second / 4
  /// Bytes of batches that wait for their execution, above which the stream is not read further.
  private static let maxBacklog = 32 << 20

  let settings: GroupSettings
  let inbox: String
  private let transport: any GroupTransport
  private let makeOrigin: () -> UInt64
  private(set) var identity: StreamIdentity
  private(set) var table: MemberTable
  private(set) var events: [LogEvent] = []
  private(set) var purposes: [UInt64: Purpose] = [:]
  /// Lines for the daemon's log: whether it is a warning, and the text.
  private(set) var lines: [(isWarning: Bool, text: String)] = []

  private(set) var origin: UInt64
  private var isJoined = false
  private var isJoining = false
  private var outgoing = Outgoing()
  private var isConnected = false
  private var disconnectedReason = "not connected yet"
  private var following: Following
  private var generation: UInt64 = 0
  private var lastConsumer: UInt64 = 0
  private var consumerName = ""
  /// The next message of the stream that is read.
  private var nextRead: UInt64
  private var stream: StreamState?
  private var askedAt: UInt64 = 0
  /// Since when the servers have less than this member has read.
  private var behindSince: UInt64?
  private var answeredAt: UInt64 = 0
  /// When the stream's side was last heard of.
  private var heardAt: UInt64
  /// Since when the log is unreachable; nil if it is reachable.
  private var unreachableSince: UInt64?
  private var pendingFlow: String?
  /// The stream's clock minus the monotonic clock.
  private var clockOffset: UInt64 = 0
  private var lastMark: UInt64 = 0
  private var ownDigest: (mark: UInt64, value: String)?
  private var waitsForDigest: UInt64?
  private var markDueAt: UInt64?
  private var refusal: (reason: String, at: UInt64)?
  private var isLost = false
  private(set) var hasLeft = false
  private var imageIsUnderWay = false
  /// What the newest image of this host covers, its bytes, and the bytes of log since then.
  private var ownImage: (position: UInt64, bytes: Int, log: Int, at: UInt64)
  /// When a batch was read last.
  private var readAt: UInt64
  /// Whether nothing is read any more, because the daemon ends.
  private var isFrozen = false
  private var imageDueAt: UInt64?
  /// The feeds that the configuration of this host defines.
  private var configured: [String: UInt32] = [:]
  /// The messages that were in the stream when this member began to follow it.
  private(set) var joinedAtSequence: UInt64?

  init(
    _ settings: GroupSettings, _ identity: StreamIdentity, _ table: MemberTable, readingFrom next: UInt64,
    inbox: String,
    _ transport: any GroupTransport, now: UInt64, makeOrigin: @escaping () -> UInt64
  ) {
    self.settings = settings
    self.identity = identity
    self.table = table
    self.inbox = inbox
    self.transport = transport
    self.makeOrigin = makeOrigin
    nextRead = next
    origin = makeOrigin()
    heardAt = now
    readAt = now
    ownImage = (table.position, 0, 0, 0)
    unreachableSince = now
    following = .idle(retryAt: now)
  }

  func takeEvents() -> [LogEvent] {
    defer { events.removeAll(keepingCapacity: true) }
    return events
  }

  func takeLines() -> [(isWarning: Bool, text: String)] {
    defer { lines.removeAll() }
    return lines
  }

  func takePurpose(_ mark: UInt64) -> Purpose? { purposes.removeValue(forKey: mark) }

  /// Whether everything was read that was in the stream when this member began to follow it.
  var isCaughtUp: Bool { joinedAtSequence.map { table.position >= $0 } ?? false }
  /// The time since when the log is unreachable.
  var unreachable: UInt64? { unreachableSince }
  var unreachableReason: String { disconnectedReason }
  var streamState: StreamState? { stream }
  var ownDigestAtMark: (mark: UInt64, value: String)? { ownDigest }

  // MARK: The engine's side

  func append(_ batch: LogBatch, now: UInt64) {
    // Batches are refused in order: with others before it, this one waits for their end.
    if !outgoing.messages.contains(where: { $0.kind == .batch }), let reason = reasonToRefuse(now) {
      events.append(.failed(from: batch.number, reason: reason))
      return
    }
    let (deadline, isEndless) = now.addingReportingOverflow(settings.timeout)
    var offset = 0
    repeat {
      let end = min(offset + GroupMessage.maxPayload, batch.frames.count)
      outgoing.add(
        .batch, Array(batch.frames[offset..<end]), time: batch.at.nanoseconds, isLast: end == batch.frames.count,
        batch: end == batch.frames.count ? batch.number : nil, deadline: isEndless ? .max : deadline)
      offset = end
    } while offset < batch.frames.count
    flush(now)
  }

  /// The reason why a batch is not even tried.
  private func reasonToRefuse(_ now: UInt64) -> String? {
    if isLost { return "this member left the group's log because its state differs" }
    if hasLeft { return "this member left the group; rejoin with: feedclient group join" }
    if let since = unreachableSince, now &- since >= settings.timeout { return unreachableText }
    if let refusal, now &- refusal.at < Self.second, !isJoined { return refusal.reason }
    return nil
  }

  private var unreachableText: String {
    "the log of group \(settings.name) is unreachable\(disconnectedReason.isEmpty ? "" : ": \(disconnectedReason)"); "
      + "start nats-server or check the network"
  }

  /// The digest of the state at a mark was computed.
  func didDigest(_ mark: UInt64, _ value: String, now: UInt64) {
    waitsForDigest = nil
    ownDigest = (mark, value)
    outgoing.add(.digest, Array("{\"mark\":\(mark),\"digest\":\"\(value)\"}".utf8), time: 0)
    compareDigests()
    flush(now)
  }

  /// An image is written and published: everybody is told.
  func didPublishImage(_ position: UInt64, from: UInt64, bytes: Int, now: UInt64) {
    imageIsUnderWay = false
    note("published an image of \(bytes) bytes that covers the log up to message \(position)", isWarning: false)
    let text = "{\"position\":\(position),\"from\":\(from),\"bytes\":\(bytes)}"
    outgoing.add(.image, Array(text.utf8), time: 0)
    flush(now)
  }

  func didFailImage(now: UInt64) {
    imageIsUnderWay = false
    imageDueAt = now &+ 10 &* Self.second
  }

  /// Tells the group which feeds the configuration of this host defines.
  func announce(_ feeds: [String: UInt32], now: UInt64) {
    configured = feeds
    if !isJoining { return }
    addConfigured()
    flush(now)
  }

  /// Puts a mark for an image behind what was read so far.
  func requestImage(isShared: Bool) {
    if imageIsUnderWay { return }
    imageIsUnderWay = true
    addMark(.image(table, isShared: isShared))
  }

  /// Reads nothing more, and puts a mark for the last image of this host, if it would cover more than the newest.
  func freeze() {
    isFrozen = true
    addMark(.image(table, isShared: false))
  }

  /// Tells the group that this member ends.
  func leave(now: UInt64) {
    hasLeft = true
    guard isJoined else { return }
    outgoing.add(.leave, [], time: 0)
    flush(now)
  }

  func rejoin(now: UInt64) {
    hasLeft = false
    beginOrigin()
    flush(now)
  }

  /// An image of this host was written.
  func didWriteImage(_ position: UInt64, bytes: Int, now: UInt64) {
    imageIsUnderWay = false
    ownImage = (position, bytes, 0, now)
  }

  /// Whether this host should write an image for its next start: soon after the last batch if it is cheap.
  private func wantsOwnImage(_ now: UInt64) -> Bool {
    guard !imageIsUnderWay, !isFrozen, isCaughtUp, table.position > ownImage.position, ownImage.log > 0 else {
      return false
    }
    let isCheap = ownImage.bytes <= 1 << 20 || ownImage.log >= ownImage.bytes / 4
    return isCheap && now &- readAt >= Self.second || isLong(ownImage.log, ownImage.bytes, now)
  }

  /// Adds a line for the daemon's log.
  func note(_ text: String, isWarning: Bool) { lines.append((isWarning, text)) }

  private func addMark(_ purpose: Purpose) {
    lastMark += 1
    purposes[lastMark] = purpose
    events.append(.mark(lastMark))
  }

  // MARK: The connection

  func didConnect(now: UInt64) {
    isConnected = true
    outgoing.retryAll()
    ask(now)
  }

  func didDisconnect(_ reason: String, now: UInt64) {
    isConnected = false
    disconnectedReason = reason
    following = .idle(retryAt: now &+ Self.patience)
    if unreachableSince == nil { unreachableSince = now }
  }

  private func ask(_ now: UInt64) {
    following = .asking(at: now)
    askedAt = now
    send(JetStream.streamInfo(settings.stream), reply: "\(inbox).info", "")
  }

  private func send(_ subject: String, reply: String?, _ text: String) {
    _ = transport.publish(subject, reply: reply, identity: nil, rollup: nil, Array(text.utf8))
  }

  /// Handles a message.
  func receive(_ input: Input, now: UInt64) {
    if isLost || isFrozen { return }
    if input.subject == deliverSubject { return deliver(input, now) }
    guard input.subject.hasPrefix("\(inbox).") else { return }
    let name = input.subject.dropFirst(inbox.count + 1)
    if name.hasPrefix("ack.") {
      acknowledge(input, UInt64(name.dropFirst(4)) ?? 0, now)
    } else if name == "bucket" {
      didAskForBucket(input, now)
    } else if name == "info" {
      didAsk(input, now)
    } else if name.hasPrefix("consumer.") {
      guard UInt64(name.dropFirst(9)) == generation else { return }
      didCreateConsumer(input, now)
    }
  }

  private var deliverSubject: String { "\(inbox)-log.\(generation)" }

  /// Servers that were killed may have lost the image, without which nobody can join: it is published again.
  private func didAskForBucket(_ input: Input, _ now: UInt64) {
    guard input.status == nil, let answer = JSONObject(input.bytes), let stream, stream.first > 1, isCaughtUp else {
      return
    }
    let isMissing =
      JetStream.failure(answer).map { $0.error == JetStream.Failure.streamNotFound }
      ?? (StreamState(answer).map { $0.messages < 2 } ?? false)
    guard isMissing, imageDueAt == nil, !imageIsUnderWay else { return }
    imageDueAt = now &+ rank * 5 * Self.second
  }

  private func didAsk(_ input: Input, _ now: UInt64) {
    guard input.status == nil, let answer = JSONObject(input.bytes) else { return }
    if let failure = JetStream.failure(answer) {
      if failure.error == JetStream.Failure.streamNotFound {
        lose("stream \(settings.stream) does not exist any more; this member begins anew")
      } else {
        disconnectedReason = failure.description
      }
      return
    }
    guard let state = StreamState(answer) else { return }
    answeredAt = now
    stream = state
    guard case .asking = following else { return }
    do throws(GroupError) {
      let found = try StreamIdentity(state.description, stream: settings.stream)
      guard found.epoch == identity.epoch else {
        return lose("stream \(settings.stream) was replaced by another one (epoch \(found.epoch))")
      }
      let differences = found.differences(from: identity.limits)
      guard differences.isEmpty else {
        return lose("\(GroupError.otherLimits(group: settings.name, differences: differences))")
      }
    } catch {
      return lose("\(error)")
    }
    if state.first > nextRead && state.first > 1 && !(state.messages == 0 && state.first == nextRead) {
      return lose("the log was trimmed behind an image while this member was away")
    }
    // A server that leads the stream since a moment may not know its end yet.
    if state.last &+ 1 < nextRead {
      let since = behindSince ?? now
      behindSince = since
      disconnectedReason = "the servers do not have the end of the log yet"
      following = .idle(retryAt: now &+ Self.patience)
      if now &- since < Self.leaderPatience { return }
      return lose(
        "the stream ends with message \(state.last), and this member has read up to \(nextRead - 1): the servers lost messages"
      )
    }
    behindSince = nil
    if joinedAtSequence == nil { joinedAtSequence = state.last }
    if !consumerName.isEmpty { send(JetStream.deleteConsumer(settings.stream, consumerName), reply: nil, "") }
    consumerName = ""
    generation += 1
    lastConsumer = 0
    pendingFlow = nil
    following = .creating(at: now)
    transport.follow(deliverSubject)
    send(
      JetStream.createConsumer(settings.stream), reply: "\(inbox).consumer.\(generation)",
      JetStream.consumer(settings.stream, deliver: deliverSubject, from: nextRead))
  }

  private func didCreateConsumer(_ input: Input, _ now: UInt64) {
    guard case .creating = following else { return }
    let answer = JSONObject(input.bytes)
    if input.status != nil || JetStream.failure(answer) != nil {
      disconnectedReason = JetStream.failure(answer)?.description ?? "no answer"
      following = .idle(retryAt: now &+ Self.patience)
      return
    }
    following = .following
    consumerName = answer?.string("name") ?? ""
    didHear(now)
    if !isJoining && !hasLeft { beginOrigin() }
    flush(now)
  }

  private func didHear(_ now: UInt64) {
    heardAt = now
    if now &- answeredAt < 3 &* Self.infoPause { becomeReachable() }
  }

  private func becomeReachable() {
    if unreachableSince != nil && isConnected && following == .following {
      unreachableSince = nil
      lines.append((false, "following the log of group \(settings.name) from message \(nextRead) on"))
    }
  }

  // MARK: Delivery

  private func deliver(_ input: Input, _ now: UInt64) {
    if input.status == "100" {
      didHear(now)
      if let reply = input.reply ?? input.stalled { answerFlow(reply) }
      // A heartbeat that knows of more messages than arrived.
      if let last = input.lastConsumer, last > lastConsumer, input.reply == nil { refollow(now) }
      return
    }
    guard let place = JetStream.Place(input.reply) else { return }
    guard place.consumer == lastConsumer &+ 1 else {
      if place.consumer > lastConsumer { refollow(now) }
      return
    }
    lastConsumer = place.consumer
    if place.stream < nextRead { return }
    if place.stream > nextRead {
      return lose("\(GroupError.gap(stream: settings.stream, from: nextRead, to: place.stream - 1))")
    }
    nextRead = place.stream &+ 1
    didHear(now)
    read(input, place, now)
  }

  private func answerFlow(_ reply: String) {
    if counter.value > Self.maxBacklog {
      pendingFlow = reply
    } else {
      send(reply, reply: nil, "")
    }
  }

  /// Follows with a new consumer, because messages of this one are missing.
  private func refollow(_ now: UInt64) {
    ask(now)
  }

  private func read(_ input: Input, _ place: JetStream.Place, _ now: UInt64) {
    let message: GroupMessage
    let payload: UnsafeRawBufferPointer
    do throws(GroupMessage.Flaw) {
      (message, payload) = try GroupMessage.parse(input.bytes)
    } catch {
      if error == .foreign {
        table.skip(place.stream)
        lines.append(
          (
            true,
            "message \(place.stream) of stream \(settings.stream) is not of feedd and is skipped; find out who publishes to "
              + settings.subject
          ))
        return
      }
      return lose(
        "message \(place.stream) of stream \(settings.stream) is of a newer feedd (\(error)); update this host")
    }
    let isOwn = message.origin == origin
    switch table.receive(message, payload, sequence: place.stream, time: place.time) {
    case .batch(let requests, let moment):
      readAt = now
      ownImage.log += payload.count
      if isOwn, let sent = outgoing.resolve(through: message.number), let batch = sent.batch {
        refusal = nil
        events.append(.ordered(batch, at: Instant(nanoseconds: moment)))
      } else {
        hand(over: requests, payload, input.owner, place.stream, moment)
      }
      proposeMark(now)
      proposeImage(now)
    case .part, .mark, .digest, .image, .configured, .left, .joined:
      if isOwn { _ = outgoing.resolve(through: message.number) }
      didReceive(message, payload, place, now)
    case .none(let reason):
      didSkip(message, reason, place, now)
    }
  }

  private func hand(
    over requests: MemberTable.Requests, _ payload: UnsafeRawBufferPointer, _ owner: AnyObject, _ number: UInt64,
    _ moment: UInt64
  ) {
    let held: HeldFrames
    switch requests {
    case .payload: held = HeldFrames(payload, owner)
    case .joined(let bytes): held = HeldFrames(bytes)
    }
    events.append(
      .received(
        LogBatch(
          number: number, at: Instant(nanoseconds: moment), revision: nil, frames: held.frames,
          owner: HeldBytes(held, counter))))
  }

  /// Counts the bytes of batches that wait for their execution.
  let counter = ByteCounter()

  private func didReceive(
    _ message: GroupMessage, _ payload: UnsafeRawBufferPointer, _ place: JetStream.Place, _ now: UInt64
  ) {
    switch message.kind {
    case .join:
      if message.origin == origin {
        isJoined = true
        clockOffset = place.time &- now
        flush(now)
      } else if isJoined, !hasLeft, table.members[origin] == nil {
        lose("another daemon joined as this member; give each its own state directory")
      }
    case .mark:
      markDueAt = nil
      if isCaughtUp, waitsForDigest == nil {
        waitsForDigest = place.stream
        addMark(.digest(mark: place.stream))
      }
    case .digest: compareDigests()
    case .image: imageDueAt = nil
    case .configured:
      if message.origin != origin, let (feed, host) = table.conflict(of: configured, of: settings.member) {
        note(Self.conflictText(feed, settings.host, host), isWarning: true)
      }
    case .batch, .leave: break
    }
  }

  private func didSkip(_ message: GroupMessage, _ reason: MemberTable.Skip, _ place: JetStream.Place, _ now: UInt64) {
    guard message.origin == origin else { return }
    switch reason {
    case .duplicate: break
    case .unknownOrigin:
      if isJoined { beginOrigin() }
      flush(now)
    case .late:
      clockOffset = place.time &- now
      fallthrough
    case .gap, .invalid:
      outgoing.renew(from: table.members[origin]?.next ?? 1)
      flush(now)
    }
  }

  /// The error for a feed that the configurations of two hosts define differently.
  static func conflictText(_ feed: String, _ own: String, _ other: String) -> String {
    "feed \"\(feed)\" is defined differently by the configurations of the hosts \(own) and \(other); make them equal, or remove "
      + "one"
  }

  private func compareDigests() {
    guard let own = ownDigest, let other = table.digest, own.mark == other.mark, own.value != other.value else {
      return
    }
    lose(
      "\(GroupLog.divergence) from that of \(other.host) at message \(own.mark) (digest \(own.value), theirs \(other.value))"
    )
  }

  /// Stops following: the state of this member cannot be continued.
  private func lose(_ reason: String) {
    if isLost { return }
    isLost = true
    unreachableSince = unreachableSince ?? heardAt
    events.append(.lost(reason: "group \(settings.name): \(reason)"))
  }

  // MARK: Own messages

  /// Begins to number messages anew: messages of the former origin that are stored later have no effect.
  private func beginOrigin() {
    origin = makeOrigin()
    isJoining = true
    isJoined = false
    outgoing.removeAll()
    let text =
      "{\"member\":\"\(settings.member)\",\"host\":\(JetStream.quoted(settings.host)),\"version\":"
      + "\(JetStream.quoted(settings.version)),\"pid\":\(settings.pid)}"
    outgoing.add(.join, Array(text.utf8), time: 0)
    if !configured.isEmpty { addConfigured() }
  }

  private func addConfigured() {
    let members = configured.sorted { $0.key < $1.key }.map { "\(JetStream.quoted($0.key)):\($0.value)" }
    outgoing.add(.configured, Array("{\"feeds\":{\(members.joined(separator: ","))}}".utf8), time: 0)
  }

  /// Sends what was not sent yet or was not acknowledged for a while.
  private func flush(_ now: UInt64) {
    guard following == .following, isConnected, !isLost else { return }
    for place in outgoing.unsent(since: now > Self.patience ? now - Self.patience : 0) {
      let item = outgoing.messages[place]
      // The first message tells the offset of the stream's clock, from which deadlines are computed.
      if !isJoined && item.kind != .join { return }
      let deadline = item.deadline.map { $0 == .max ? 0 : $0 &+ clockOffset &- Self.margin } ?? 0
      let message = GroupMessage(
        item.kind, origin: origin, number: item.number, time: item.time, deadline: deadline, isLast: item.isLast)
      let bytes = item.payload.withUnsafeBytes { message.encoded($0) }
      outgoing.didSend(place, at: now)
      let failure = transport.publish(
        settings.subject, reply: "\(inbox).ack.\(item.identity)",
        identity: "\(String(origin, radix: 16)).\(item.identity)", rollup: nil, bytes)
      if failure != nil { return }
    }
  }

  /// Handles the server's answer to a message.
  private func acknowledge(_ input: Input, _ identity: UInt64, _ now: UInt64) {
    guard let item = outgoing.message(identity: identity) else { return }
    if input.status != nil { return }
    guard let failure = JetStream.failure(JSONObject(input.bytes)) else {
      outgoing.didAcknowledge(identity)
      heardAt = now
      return
    }
    let reason =
      failure.isFull
      ? "stream \(settings.stream) is full (\(failure.description)); free space on the servers or raise their JetStream limits"
      : "stream \(settings.stream) refused the message: \(failure.description)"
    refusal = (reason, now)
    if item.kind == .batch { fail(reason, now) }
  }

  /// Refuses the batches that are not stored. Those that were sent may be stored later; they have no effect then.
  private func fail(_ reason: String, _ now: UInt64) {
    guard let first = outgoing.messages.lazy.compactMap(\.batch).first else { return }
    events.append(.failed(from: first, reason: reason))
    beginOrigin()
    flush(now)
  }

  // MARK: Time

  /// Does what is due. Returns the nanoseconds until it should be called again.
  func tick(_ now: UInt64) -> UInt64 {
    if isLost || isFrozen { return Self.second }
    if let deadline = outgoing.deadline, deadline <= now {
      let wasSent = outgoing.messages.contains { $0.kind == .batch && $0.wasSent }
      let seconds = Double(settings.timeout) / 1e9
      fail(
        wasSent
          ? "the log of group \(settings.name) did not confirm the change within \(seconds) s; it may be stored, so read the feed "
            + "before you repeat it"
          : unreachableText, now)
    }
    if isConnected { attend(now) }
    if let reply = pendingFlow, counter.value <= Self.maxBacklog / 2 {
      pendingFlow = nil
      send(reply, reply: nil, "")
    }
    if let due = imageDueAt, due <= now, !imageIsUnderWay, isJoined {
      imageDueAt = nil
      requestImage(isShared: true)
    }
    if wantsOwnImage(now) { requestImage(isShared: false) }
    if let due = markDueAt, due <= now, isJoined, !outgoing.messages.contains(where: { $0.kind == .mark }) {
      outgoing.add(.mark, [], time: 0)
      flush(now)
    }
    var pause = Self.second / 2
    if !outgoing.isEmpty || pendingFlow != nil || following != .following { pause = Self.second / 10 }
    if let deadline = outgoing.deadline { pause = min(pause, deadline > now ? deadline - now : 0) }
    return max(pause, 1_000_000)
  }

  private func attend(_ now: UInt64) {
    switch following {
    case .idle(let time): if now >= time { ask(now) }
    case .asking(let time), .creating(let time): if now &- time >= Self.patience { ask(now) }
    case .following:
      if now &- heardAt >= Self.silence {
        if unreachableSince == nil { unreachableSince = heardAt }
        disconnectedReason = "the servers do not answer"
        ask(now)
      } else {
        flush(now)
        if now &- askedAt >= Self.infoPause {
          askedAt = now
          send(JetStream.streamInfo(settings.bucketStream), reply: "\(inbox).bucket", "")
          send(JetStream.streamInfo(settings.stream), reply: "\(inbox).info", "")
        }
        noteQuorum(now)
      }
    }
  }

  /// A consumer may still be served by a server that cannot reach the leader of the stream.
  private func noteQuorum(_ now: UInt64) {
    let isAnswered = now &- answeredAt < 3 &* Self.infoPause
    if !isAnswered && unreachableSince == nil {
      unreachableSince = answeredAt
      disconnectedReason = "the stream has no leader"
    } else if isAnswered {
      becomeReachable()
    }
  }

  /// The place of this member among all, so that one of them acts first.
  private var rank: UInt64 {
    UInt64(table.members.values.filter { $0.member < settings.member }.count)
  }

  /// Lets all members compare their digests after some thousand batches.
  private func proposeMark(_ now: UInt64) {
    guard table.batchesSinceMark >= settings.markBatches, markDueAt == nil, isCaughtUp, isJoined, !hasLeft else {
      return
    }
    markDueAt = now &+ rank * Self.second
  }

  /// Whether an image is due after so many bytes of log: soon if they are many, and otherwise seldom, because a busy group would
  /// write images all the time.
  private func isLong(_ log: Int, _ image: Int, _ now: UInt64) -> Bool {
    let bound = max(settings.imageBytes, image)
    return log > bound && (now &- ownImage.at > Self.imagePause || log > 16 * bound)
  }

  /// Publishes an image after some bytes of log. Others wait a few seconds for it.
  private func proposeImage(_ now: UInt64) {
    guard imageDueAt == nil, !imageIsUnderWay, isCaughtUp,
      isLong(table.bytesSinceImage, table.image?.bytes ?? 0, now)
    else { return }
    imageDueAt = now &+ rank * 5 * Self.second
  }
}

extension GroupMachine {
  /// What is known of the group.
  /// - Parameters:
  ///   - wall: the time of day, in nanoseconds since 1970.
  ///   - server: the URL of the connected server.
  func status(_ now: UInt64, wall: UInt64, server: String) -> GroupStatus {
    var status = GroupStatus()
    status.name = settings.name
    status.epoch = identity.epoch
    status.server = server
    if let since = unreachable { status.unreachable = (wall &- (now &- min(since, now)), unreachableReason) }
    status.hasLeft = hasLeft
    status.position = table.position
    status.waitingBytes = counter.value
    if let stream = streamState {
      status.last = stream.last
      status.streamBytes = stream.bytes
      status.replicas = stream.replicas
      status.leader = stream.leader
    }
    status.members = table.members.sorted { ($0.value.host, $0.key) < ($1.value.host, $1.key) }.map { _, member in
      GroupStatus.Member(
        host: member.host, member: member.member, version: member.version, pid: member.pid, seen: member.seen,
        isSelf: member.member == settings.member, agrees: table.digest.map { $0.agreeing.contains(member.member) })
    }
    status.image = table.image.map { ($0.position, $0.bytes, $0.moment, $0.host) }
    status.digest = table.digest.map { ($0.mark, $0.value) }
    return status
  }
}

/// The bytes of a received batch.
final class HeldFrames: @unchecked Sendable {
  let frames: UnsafeRawBufferPointer
  private let owner: AnyObject?

  init(_ frames: UnsafeRawBufferPointer, _ owner: AnyObject) {
    self.frames = frames
    self.owner = owner
  }

  init(_ bytes: [UInt8]) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    copy.copyBytes(from: bytes)
    frames = UnsafeRawBufferPointer(copy)
    owner = nil
  }

  deinit { if owner == nil { frames.deallocate() } }
}
