import FeedChange
import FeedJSON
import FeedModel

/// The messages of this member on their way to the stream, and the origin that numbers them.
///
/// They are sent until the stream shows that they had their effect. A batch that the stream does not store in time is refused, and
/// with it all later ones; another origin begins then, so that what is stored later has no effect.
struct OwnMessages {
  /// What became of the announcement of the feeds that a configuration defines.
  struct Announcement: Equatable {
    /// Counted by the caller.
    let number: Int
    /// Whether the log has it.
    var isDecided = false
    /// The reason why it was not accepted: the configuration of another host defines a feed differently.
    var refusal: String?
    /// The feeds that the other members had configured when the log got it.
    var others: Set<String> = []
  }

  /// Nanoseconds without an acknowledgement after which a message is sent again.
  private static let patience = second
  /// Nanoseconds after which the servers must know of a message that they acknowledged.
  private static let lossPatience = 5 * second
  /// Nanoseconds for which a refusal by the servers counts: until the message that they refused was sent again.
  private static let refusalPatience = 3 * patience

  private let settings: GroupSettings
  private let inbox: String
  private let transport: any GroupTransport
  private let makeOrigin: () -> UInt64
  /// A random number under which the messages are numbered.
  private(set) var origin: UInt64
  /// Whether the stream has the first message of the origin, and whether that was sent.
  private(set) var isJoined = false
  private(set) var hasBegun = false
  private var outgoing = Outgoing()
  /// The stream's clock minus the monotonic clock.
  private var clockOffset: UInt64 = 0
  /// Why the servers refused a message last.
  private var refusal: (reason: String, at: UInt64)?
  /// The feeds that the configuration of this host defines; nil until it was read.
  private(set) var configured: [String: UInt32]?
  private(set) var announcement = Announcement(number: 0)

  init(_ settings: GroupSettings, inbox: String, _ transport: any GroupTransport, makeOrigin: @escaping () -> UInt64) {
    (self.settings, self.inbox, self.transport, self.makeOrigin) = (settings, inbox, transport, makeOrigin)
    origin = makeOrigin()
  }

  /// The time before its deadline after which a message has no effect, so that the news of one in time arrives in time.
  private var margin: UInt64 { min(settings.timeout, second) / 4 }

  // MARK: Adding

  /// Begins to number messages anew: messages of the former origin that are stored later have no effect. Those that were added
  /// before the first beginning are kept.
  mutating func begin() {
    let waiting = hasBegun ? [] : outgoing.messages
    origin = makeOrigin()
    (hasBegun, isJoined) = (true, false)
    outgoing.removeAll()
    add(
      .join,
      "{\"member\":\"\(settings.member)\",\"host\":\(settings.host.quotedAsJSON),\"version\":"
        + "\(settings.version.quotedAsJSON),\"pid\":\(settings.pid)}")
    addConfigured()
    for message in waiting { outgoing.add(again: message) }
  }

  mutating func add(_ kind: GroupMessage.Kind, _ text: String) { outgoing.add(kind, Array(text.utf8), time: 0) }

  /// Tells the others which feeds the configuration of this host defines, now and with each new origin.
  mutating func configure(_ feeds: [String: UInt32], number: Int) {
    announcement = Announcement(number: number)
    configured = feeds
    if hasBegun { addConfigured() }
  }

  private mutating func addConfigured() {
    guard let configured else { return }
    let text = "{\"feeds\":{\(configured.membersAsJSON)}}"
    // It is one message. The servers would not take it, nor what is behind it.
    let room = transport.room(for: .max, beside: GroupMessage.byteCount)
    guard text.utf8.count <= room else {
      announcement.isDecided = true
      announcement.refusal =
        "the names of its \(grouped(configured.count)) feeds take \(grouped(text.utf8.count)) bytes, and the servers of group "
        + "\(settings.name) take \(grouped(room)) in one message; raise max_payload of nats-server, or define fewer feeds"
      return
    }
    add(.configured, text)
  }

  /// Adds a batch, as several messages if it is long.
  mutating func add(_ batch: LogBatch, now: UInt64) {
    let (deadline, isEndless) = now.addingReportingOverflow(settings.timeout)
    let room = transport.room(for: GroupMessage.maxPayload, beside: GroupMessage.byteCount)
    var offset = 0
    repeat {
      let end = min(offset + room, batch.frames.count)
      let isLast = end == batch.frames.count
      outgoing.add(
        .batch, Array(batch.frames[offset..<end]), time: batch.at.nanoseconds, isLast: isLast,
        batch: isLast ? batch.number : nil, deadline: isEndless ? .max : deadline)
      offset = end
    } while offset < batch.frames.count
  }

  func has(_ kind: GroupMessage.Kind) -> Bool { outgoing.messages.contains { $0.kind == kind } }
  var isEmpty: Bool { outgoing.isEmpty }
  var deadline: UInt64? { outgoing.deadline }

  // MARK: Sending

  /// Sends what was not sent yet or was not acknowledged for a while.
  /// - Parameters:
  ///   - mark: what was read last.
  ///   - isNamed: whether the servers are to discard a message that is sent again. Otherwise the members do.
  mutating func flush(_ now: UInt64, after mark: LogRecords.Mark?, isNamed: Bool) {
    // What follows a leave has no effect: it is refused when the member has left.
    let end = outgoing.messages.firstIndex { $0.kind == .leave } ?? .max
    for place in outgoing.unsent(since: now > Self.patience ? now - Self.patience : 0) where place <= end {
      let item = outgoing.messages[place]
      // The first message tells the offset of the stream's clock, from which deadlines are computed.
      if !isJoined && item.kind != .join { return }
      let deadline = item.deadline.map { $0 == .max ? 0 : $0 &+ clockOffset &- margin } ?? 0
      let message = GroupMessage(
        item.kind, origin: origin, number: item.number, time: item.time, deadline: deadline, isLast: item.isLast,
        round: item.round, mark: mark)
      let bytes = item.payload.withUnsafeBytes { message.encoded($0) }
      outgoing.didSend(place, at: now)
      let failure = transport.publish(
        settings.subject, reply: "\(inbox).ack.\(item.identity)",
        identity: isNamed ? "\(String(origin, radix: 16)).\(item.identity)" : nil, bytes)
      if failure != nil { return }
    }
  }

  /// Lets all messages be sent again at once: a new connection may have lost them.
  mutating func retry() { outgoing.retryAll() }

  /// Handles the server's answer to a message. Returns whether it is stored; nil if the answer tells nothing, such as that to a message
  /// that was sent again while the servers had not decided about it.
  mutating func acknowledge(_ input: GroupInput, _ identity: UInt64, now: UInt64) -> Bool? {
    guard let item = outgoing.message(identity: identity), input.status == nil else { return nil }
    let answer = JSONObject(input.bytes)
    guard let failure = JetStream.failure(answer) else {
      // Old servers do not know where the message is that they do not store again.
      let place = answer?.unsigned("seq") ?? 0
      outgoing.didAcknowledge(identity, storedAt: place == 0 ? .max : place, now: now)
      return true
    }
    if failure.isUndecided { return nil }
    let reason =
      failure.isFull
      ? "stream \(settings.stream) is full (\(failure.description)); \(JetStream.Failure.room)"
      : "stream \(settings.stream) refused the message: \(failure.description)"
    refusal = (reason, now)
    return item.kind == .batch ? false : nil
  }

  /// Why the servers refused a message just now; nil if they did not.
  func refusalReason(_ now: UInt64) -> String? {
    refusal.flatMap { now &- $0.at < Self.refusalPatience ? $0.reason : nil }
  }

  // MARK: In the stream

  mutating func didJoin(at time: UInt64, now: UInt64) {
    isJoined = true
    clockOffset = time &- now
    refusal = nil
  }

  /// The stream has the last message of the origin. Returns the numbers of the batches that were added behind it; nil if there is none.
  mutating func didLeave() -> ClosedRange<UInt64>? {
    isJoined = false
    let batches = outgoing.messages.compactMap(\.batch)
    outgoing.removeAll()
    return batches.first.flatMap { first in batches.last.map { first...$0 } }
  }

  mutating func resolve(through number: UInt64) -> Outgoing.Message? {
    guard let message = outgoing.resolve(through: number) else { return nil }
    if message.batch != nil { refusal = nil }
    return message
  }

  /// A message is in the stream and has no effect there. It and those behind it are sent anew, unless they were since.
  /// - Parameter next: the number of the next message that has an effect.
  mutating func renew(_ message: GroupMessage, next: UInt64, isLate: Bool, at time: UInt64, now: UInt64) {
    if isLate { clockOffset = time &- now }
    _ = outgoing.renew(from: next, failed: (message.number, message.round))
  }

  /// Sends messages anew that are not where the servers had stored them. Returns whether there are any.
  /// - Parameter state: what the servers told last of the stream, and when.
  mutating func renewLost(after position: UInt64, _ state: StreamState?, answeredAt: UInt64) -> Bool {
    let last = state?.last ?? .max
    for message in outgoing.messages {
      guard let (place, at) = message.stored else { continue }
      let isBehindEnd = place > last && place < .max && answeredAt > at &+ Self.lossPatience
      guard place <= position || isBehindEnd else { continue }
      _ = outgoing.renew(from: message.number, failed: (message.number, message.round))
      return true
    }
    return false
  }

  /// The log has an announcement of this member, which another one may have replaced since.
  mutating func didConfigure(_ refusal: String?, besides others: @autoclosure () -> Set<String>) {
    if has(.configured) || announcement.isDecided { return }
    announcement.isDecided = true
    announcement.refusal = refusal
    announcement.others = others()
  }

  // MARK: Refusing

  /// Refuses the batches if the oldest one was not stored in time. Returns the reason.
  func overdue(_ now: UInt64, unreachable: String) -> String? {
    guard let deadline = outgoing.deadline, deadline <= now else { return nil }
    if let refusal = refusalReason(now) { return refusal }
    if !mayBeStored(before: .max) { return unreachable }
    return "the log of group \(settings.name) did not confirm the change within \(Double(settings.timeout) / 1e9) s"
  }

  /// Whether a part of a batch with a number below `number` was sent, or that with the number more than once: the servers may have
  /// stored the first one and refused the second one.
  private func mayBeStored(before number: UInt64) -> Bool {
    outgoing.messages.contains { message in
      message.kind == .batch
        && (message.number < number ? message.sendings > 0 : message.number == number && message.sendings > 1)
    }
  }

  /// Gives up all messages, and begins anew. Returns the numbers of the batches that are refused, and the whole reason; nil if
  /// there is no batch. A batch that is added later is sent.
  /// - Parameter refused: what the server knows the message by that it refused; nil for none. Batches before it may be stored, and
  ///   those behind it have no effect without it.
  mutating func abandon(_ reason: String, refused: UInt64? = nil) -> (batches: ClosedRange<UInt64>, reason: String)? {
    let number = refused.flatMap { outgoing.message(identity: $0)?.number } ?? .max
    let batches = outgoing.messages.compactMap(\.batch)
    let text = mayBeStored(before: number) ? "\(reason); \(FeedError.mayBeStored)" : reason
    outgoing.removeAll()
    begin()
    guard let first = batches.first, let last = batches.last else { return nil }
    return (first...last, text)
  }
}
