import FeedJSON

/// Follows the stream of a group from one message on.
///
/// It asks the servers for the state of the stream, lets a consumer deliver the messages, asks for another consumer when messages
/// are missing, and knows since when the log is unreachable. It makes no system call. Times are those of a monotonic clock, in
/// nanoseconds, unless they are the stream's.
///
/// Invariant: messages are accepted in the order of the stream, each once; `next` is the one that is accepted next.
struct StreamFollower {
  /// What a message or an answer leads to.
  enum Step {
    case nothing
    /// Messages are delivered from now on.
    case begun
    case message(JetStream.Place)
    /// The log cannot be followed further.
    case lost(String)
  }

  private enum Stage: Equatable {
    case idle(retryAt: UInt64)
    /// Asked for the state of the stream.
    case asking(at: UInt64)
    /// Asked for the message that was read last.
    case comparing(at: UInt64)
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

  private let settings: GroupSettings
  private let identity: StreamIdentity
  private let inbox: String
  private let transport: any GroupTransport
  private let report: GroupReport
  /// The next message of the stream.
  private(set) var next: UInt64
  /// What the servers told last of the stream; nil before the first answer.
  private(set) var state: StreamState?
  /// The last message that the stream had when it was followed first.
  private(set) var firstEnd: UInt64?
  /// Since when the log is unreachable, and why; nil if it is reachable.
  private(set) var unreachableSince: UInt64?
  private(set) var reason = "not connected yet"
  private(set) var isConnected = false
  private var stage: Stage
  /// Each consumer has a number, which its subject contains.
  private var generation: UInt64 = 0
  private var consumer = ""
  /// The messages that the consumer has delivered.
  private var delivered: UInt64 = 0
  /// An answer to the flow control of the consumer that waits for room.
  private var pendingFlow: String?
  private var askedAt: UInt64 = 0
  /// `next` at that time. What is delivered since then may be news to the answer.
  private var nextWhenAsked: UInt64 = 0
  private var answeredAt: UInt64 = 0
  /// When the stream's side was last heard of.
  private var heardAt: UInt64
  private var audit: LogAudit
  /// Since when the servers have less than was read.
  private var behindSince: UInt64?
  private var hasWarnedOfServers = false

  init(
    _ settings: GroupSettings, _ identity: StreamIdentity, from next: UInt64, inbox: String,
    _ transport: any GroupTransport, _ report: GroupReport, tail: MemberTable.Tail?, now: UInt64
  ) {
    audit = LogAudit(settings, inbox: inbox, transport, tail: tail)
    (self.settings, self.identity, self.next, self.inbox) = (settings, identity, next, inbox)
    (self.transport, self.report) = (transport, report)
    heardAt = now
    unreachableSince = now
    stage = .idle(retryAt: now)
  }

  /// What was read last.
  var mark: LogAudit.Mark? { audit.mark }
  var isFollowing: Bool { stage == .following && isConnected }
  /// The subject that the consumer delivers to.
  var subject: String { "\(inbox)-log.\(generation)" }

  // MARK: The connection

  mutating func didConnect(now: UInt64) {
    isConnected = true
    ask(now)
  }

  mutating func didDisconnect(_ reason: String, now: UInt64) {
    isConnected = false
    self.reason = reason
    stage = .idle(retryAt: now &+ Self.patience)
    if unreachableSince == nil { unreachableSince = now }
  }

  private mutating func ask(_ now: UInt64) {
    stage = .asking(at: now)
    askForState(now)
  }

  private mutating func askForState(_ now: UInt64) {
    askedAt = now
    nextWhenAsked = next
    transport.request(JetStream.streamInfo(settings.stream), reply: "\(inbox).info", "")
  }

  // MARK: Answers

  /// Handles what the servers tell of the stream.
  mutating func didAsk(_ input: GroupInput, now: UInt64) -> Step {
    guard input.status == nil, let answer = JSONObject(input.bytes) else { return .nothing }
    if let failure = JetStream.failure(answer) {
      if failure.error == JetStream.Failure.streamNotFound {
        return .lost("stream \(settings.stream) does not exist any more; this member begins anew")
      }
      reason = failure.description
      return .nothing
    }
    guard let state = StreamState(answer) else { return .nothing }
    answeredAt = now
    self.state = state
    warnOfServers(state)
    let isBehind = state.last &+ 1 < nextWhenAsked
    // Servers that lost messages would give their numbers to others.
    if stage == .following && isBehind { ask(now) }
    guard case .asking = stage else { return .nothing }
    if let loss = loss(state, isBehind, now) { return .lost(loss) }
    if behindSince != nil { return .nothing }
    if audit.compareLast(next: next, first: state.first, now: now) {
      stage = .comparing(at: now)
    } else {
      createConsumer(now)
    }
    return .nothing
  }

  private mutating func warnOfServers(_ state: StreamState) {
    if hasWarnedOfServers || state.isSafeInCluster { return }
    hasWarnedOfServers = true
    report.note(
      "the servers of group \(settings.name) are older than nats-server 2.11; before 2.10.22, their copies of the log may differ "
        + "after one of them stood still: update them, or run one server", isWarning: true)
  }

  /// The reason why the stream cannot be followed; nil if it can, or if `behindSince` is set: the answer may be another one soon.
  private mutating func loss(_ state: StreamState, _ isBehind: Bool, _ now: UInt64) -> String? {
    do throws(GroupError) {
      let found = try StreamIdentity(state.description, stream: settings.stream)
      guard found.epoch == identity.epoch else {
        return "stream \(settings.stream) was replaced by another one (epoch \(found.epoch))"
      }
      let differences = found.differences(from: identity.limits)
      guard differences.isEmpty else {
        return "\(GroupError.otherLimits(group: settings.name, differences: differences))"
      }
    } catch {
      return "\(error)"
    }
    if state.first > next && state.first > 1 {
      return "the log was trimmed behind an image while this member was away"
    }
    // A server that leads the stream since a moment may not know its end yet.
    guard isBehind else {
      behindSince = nil
      return nil
    }
    let since = behindSince ?? now
    behindSince = since
    reason = "the servers do not have the end of the log yet"
    stage = .idle(retryAt: now &+ Self.patience)
    if now &- since < Self.leaderPatience { return nil }
    return
      "the stream ends with message \(state.last), and this member has read up to \(nextWhenAsked - 1): the servers lost messages"
  }

  /// Handles the message that the servers have in the place of one that was read.
  mutating func didCompare(_ input: GroupInput, _ sequence: UInt64, now: UInt64) -> Step {
    guard input.status == nil else { return .nothing }
    guard audit.receive(JSONObject(input.bytes), sequence, now: now) else { return .lost(Self.fork(sequence)) }
    if case .comparing = stage { createConsumer(now) }
    return .nothing
  }

  private static func fork(_ sequence: UInt64) -> String {
    "\(GroupLog.divergence) from the log at message \(sequence): the servers lost messages and stored others"
  }

  /// A member told what it has read. Returns false if this one has read something else, and compares that with the servers.
  mutating func check(_ mark: LogAudit.Mark, now: UInt64) -> Bool {
    if audit.agrees(with: mark) { return true }
    audit.compare(upTo: mark.position, first: state?.first ?? 1, now: now)
    return false
  }

  private mutating func createConsumer(_ now: UInt64) {
    if firstEnd == nil { firstEnd = state?.last }
    if !consumer.isEmpty { transport.request(JetStream.deleteConsumer(settings.stream, consumer), reply: nil, "") }
    consumer = ""
    generation += 1
    delivered = 0
    pendingFlow = nil
    stage = .creating(at: now)
    transport.follow(subject)
    transport.request(
      JetStream.createConsumer(settings.stream), reply: "\(inbox).consumer.\(generation)",
      JetStream.consumer(settings.stream, deliver: subject, from: next))
  }

  /// Handles the answer to the request for a consumer.
  mutating func didCreateConsumer(_ input: GroupInput, generation: UInt64?, now: UInt64) -> Step {
    guard case .creating = stage, generation == self.generation else { return .nothing }
    let answer = JSONObject(input.bytes)
    if input.status != nil || JetStream.failure(answer) != nil {
      reason = JetStream.failure(answer)?.description ?? "no answer"
      stage = .idle(retryAt: now &+ Self.patience)
      return .nothing
    }
    stage = .following
    consumer = answer?.string("name") ?? ""
    didHear(now)
    return .begun
  }

  // MARK: Delivery

  /// Handles what the consumer delivers. Returns the place of a message that is to be read now.
  /// - Parameter isBusy: whether more is read than is executed.
  mutating func deliver(_ input: GroupInput, isBusy: Bool, now: UInt64) -> Step {
    if input.status == "100" {
      didHear(now)
      if let reply = input.reply ?? input.stalled {
        if isBusy { pendingFlow = reply } else { transport.request(reply, reply: nil, "") }
      }
      // A heartbeat that knows of more messages than arrived.
      if let last = input.lastConsumer, last > delivered, input.reply == nil { ask(now) }
      return .nothing
    }
    guard let place = JetStream.Place(input.reply) else { return .nothing }
    guard place.consumer == delivered &+ 1 else {
      if place.consumer > delivered { ask(now) }
      return .nothing
    }
    delivered = place.consumer
    if place.stream < next { return .nothing }
    if place.stream > next {
      return .lost("\(GroupError.gap(stream: settings.stream, from: next, to: place.stream - 1))")
    }
    guard audit.read(place.stream, GroupMessage.checksum(input.bytes)) else { return .lost(Self.fork(place.stream)) }
    next = place.stream &+ 1
    didHear(now)
    return .message(place)
  }

  /// Records that the servers are alive.
  mutating func didHear(_ now: UInt64) {
    heardAt = now
    if now &- answeredAt < 3 &* Self.infoPause { becomeReachable() }
  }

  private mutating func becomeReachable() {
    guard unreachableSince != nil, isFollowing else { return }
    unreachableSince = nil
    report.note("following the log of group \(settings.name) from message \(next) on", isWarning: false)
  }

  // MARK: Time

  /// Does what is due. Returns whether the servers were asked for the state of the stream, which happens every few seconds.
  mutating func attend(isBusy: Bool, now: UInt64) -> Bool {
    if let reply = pendingFlow, !isBusy {
      pendingFlow = nil
      transport.request(reply, reply: nil, "")
    }
    audit.attend(now)
    guard isConnected else { return false }
    switch stage {
    case .idle(let time): if now >= time { ask(now) }
    case .asking(let time), .comparing(let time), .creating(let time): if now &- time >= Self.patience { ask(now) }
    case .following:
      if now &- heardAt >= Self.silence {
        if unreachableSince == nil { unreachableSince = heardAt }
        reason = "the servers do not answer"
        ask(now)
        return false
      }
      noteQuorum(now)
      if now &- askedAt < Self.infoPause { return false }
      askForState(now)
      return true
    }
    return false
  }

  /// A consumer may still be served by a server that cannot reach the leader of the stream.
  private mutating func noteQuorum(_ now: UInt64) {
    if now &- answeredAt < 3 &* Self.infoPause {
      becomeReachable()
    } else if unreachableSince == nil {
      unreachableSince = answeredAt
      reason = "the stream has no leader"
    }
  }

  /// Records that nothing is followed any more.
  mutating func end() { unreachableSince = unreachableSince ?? heardAt }

  /// Whether something is to be done soon.
  var isWaiting: Bool { pendingFlow != nil || stage != .following }
}
