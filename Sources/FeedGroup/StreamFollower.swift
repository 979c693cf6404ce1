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
    /// Another member has read something else, and this one what the servers have.
    case agreed
    /// The log cannot be followed further.
    case lost(String)
  }

  private enum Stage: Equatable {
    case idle(retryAt: UInt64)
    case asking(at: UInt64)
    /// Asked for the message that was read last.
    case comparing(at: UInt64)
    case creating(at: UInt64)
    case following
  }

  /// Nanoseconds without an answer after which a request is repeated.
  private static let patience = second
  /// The longest time without an answer after which the steps before a consumer begin anew.
  private static let longestStep = 4 * second
  /// Nanoseconds between two questions for the state of the stream.
  private static let infoPause = 2 * second

  private let settings: GroupSettings
  private let report: GroupReport
  private(set) var next: UInt64
  /// The last message that the stream had when it was followed first.
  private(set) var firstEnd: UInt64?
  private(set) var isConnected = false
  private var stage: Stage
  /// Nanoseconds without an answer after which the steps before a consumer begin anew. A late answer means nothing then, so the next
  /// time is longer.
  private var stepPatience = patience
  private var inquiry: StreamInquiry
  private var consumer: StreamConsumer
  private var audit: LogAudit
  private var reach: StreamReach

  init(
    _ settings: GroupSettings, _ identity: StreamIdentity, from next: UInt64, inbox: String,
    _ transport: any GroupTransport, _ report: GroupReport, now: UInt64
  ) {
    (self.settings, self.report, self.next) = (settings, report, next)
    inquiry = StreamInquiry(settings, identity, inbox: inbox, transport, report)
    consumer = StreamConsumer(settings, inbox: inbox, transport)
    audit = LogAudit(settings, inbox: inbox, transport)
    reach = StreamReach(now: now)
    stage = .idle(retryAt: now)
  }

  var isFollowing: Bool { stage == .following && isConnected }
  /// What the servers told last of the stream, and when; nil before the first answer.
  var state: StreamState? { inquiry.state }
  var answeredAt: UInt64 { inquiry.answeredAt }
  /// Since when the log is unreachable, and why; nil if it is reachable.
  var unreachableSince: UInt64? { reach.unreachableSince }
  var reason: String { reach.reason }
  var subject: String { consumer.subject }

  // MARK: The connection

  mutating func didConnect(now: UInt64) {
    isConnected = true
    ask(now)
  }

  mutating func didDisconnect(_ reason: String, now: UInt64) {
    isConnected = false
    stage = .idle(retryAt: now &+ Self.patience)
    reach.becomeUnreachable(reason, since: now)
  }

  private mutating func ask(_ now: UInt64) {
    stage = .asking(at: now)
    inquiry.ask(next: next, now: now)
  }

  // MARK: Answers

  /// Handles what the servers tell of the stream.
  mutating func didAsk(_ input: GroupInput, _ records: LogRecords, now: UInt64) -> Step {
    if input.status == "503" {
      reach.didFail("the servers run without JetStream, a leaf node does not reach them, or the user may not use it")
    }
    guard input.status == nil, let answer = JSONObject(input.bytes) else { return .nothing }
    if let failure = JetStream.failure(answer) {
      if failure.error == JetStream.Failure.streamNotFound {
        return .lost("\(GroupLog.oblivion): stream \(settings.stream) does not exist")
      }
      reach.didFail(failure.description)
      return .nothing
    }
    guard let state = StreamState(answer) else { return .nothing }
    if state.isLeaderless {
      reach.didFail("the servers know no leader of the stream")
      return .nothing
    }
    inquiry.didAnswer(state, now: now)
    if stage == .following && next == inquiry.next { audit.compare(records, state.end, now: now) }
    // Servers that lost messages would give their numbers to others.
    if stage == .following && inquiry.isBehind { ask(now) }
    guard case .asking = stage else { return .nothing }
    switch inquiry.verdict(state, next: next, now: now) {
    case .lost(let reason): return .lost(reason)
    case .behind:
      reach.didFail("the servers do not have the end of the log yet")
      stage = .idle(retryAt: now &+ Self.patience)
    case .usable:
      if audit.compareLast(records, first: state.first, now: now) {
        stage = .comparing(at: now)
      } else {
        createConsumer(now)
      }
    }
    return .nothing
  }

  /// Handles the message that the servers have in the place of one that was read.
  mutating func didCompare(_ input: GroupInput, _ sequence: UInt64, _ records: LogRecords, now: UInt64) -> Step {
    guard input.status == nil else { return .nothing }
    let finding = audit.receive(JSONObject(input.bytes), sequence, records, now: now)
    if finding == .difference { return .lost(Self.fork(sequence)) }
    if case .comparing = stage, !audit.isComparing { createConsumer(now) }
    return finding == .agreement ? .agreed : .nothing
  }

  /// The reason to leave a log that has another message than was read.
  static func fork(_ sequence: UInt64) -> String {
    "\(GroupLog.divergence) from the log at message \(sequence): \(GroupLog.replacement)"
  }

  mutating func compare(_ message: GroupMessage, at sequence: UInt64, _ records: LogRecords, now: UInt64) {
    audit.compare(message, at: sequence, records, now: now)
  }

  mutating func dispute() { audit.dispute() }
  var isDisputed: Bool { audit.isDisputed }

  /// See ``LogAudit``.
  mutating func beginDispute(_ records: LogRecords, now: UInt64) -> Bool {
    isFollowing && audit.beginDispute(records, first: state?.first ?? 1, now: now)
  }

  mutating func isTellingDue(_ records: LogRecords, rank: UInt64, now: UInt64) -> Bool {
    isFollowing && audit.isTellingDue(records, rank: rank, now: now)
  }

  private mutating func createConsumer(_ now: UInt64) {
    if firstEnd == nil { firstEnd = state?.last }
    stage = .creating(at: now)
    consumer.create(from: next)
  }

  mutating func didCreateConsumer(_ input: GroupInput, generation: UInt64?, now: UInt64) -> Step {
    guard case .creating = stage, generation == consumer.generation else { return .nothing }
    let answer = JSONObject(input.bytes)
    if input.status != nil || JetStream.failure(answer) != nil {
      reach.didFail(JetStream.failure(answer)?.description ?? "no answer")
      stage = .idle(retryAt: now &+ Self.patience)
      return .nothing
    }
    (stage, stepPatience) = (.following, Self.patience)
    consumer.didCreate(answer)
    didHear(now)
    return .begun
  }

  // MARK: Delivery

  /// Handles what the consumer delivers. Returns the place of a message that is to be read now.
  /// - Parameter isBusy: whether more is read than is executed.
  mutating func deliver(_ input: GroupInput, isBusy: Bool, now: UInt64) -> Step {
    switch consumer.accept(input, isBusy: isBusy) {
    case .nothing: return .nothing
    case .heartbeat:
      didHear(now)
      return .nothing
    case .gap:
      didHear(now)
      ask(now)
      return .nothing
    case .message(let place):
      if place.stream < next { return .nothing }
      if place.stream > next {
        return .lost("\(GroupError.gap(stream: settings.stream, from: next, to: place.stream - 1))")
      }
      next = place.stream &+ 1
      didHear(now)
      return .message(place)
    }
  }

  /// Records that the servers are alive.
  mutating func didHear(_ now: UInt64) {
    reach.didHear(now)
    look(now)
  }

  private mutating func look(_ now: UInt64) {
    guard isFollowing, reach.look(answeredAt: answeredAt, now: now) else { return }
    report.note("following the log of group \(settings.name) from message \(next) on", isWarning: false)
  }

  // MARK: Time

  /// Does what is due. Returns whether the servers were asked for the state of the stream, which happens every few seconds.
  mutating func attend(isBusy: Bool, now: UInt64) -> Bool {
    consumer.attend(isBusy: isBusy)
    audit.attend(now)
    guard isConnected else { return false }
    switch stage {
    case .idle(let time): if now >= time { ask(now) }
    case .asking(let time): if now &- time >= Self.patience { ask(now) }
    case .comparing(let time), .creating(let time):
      if now &- time < stepPatience { return false }
      stepPatience = min(2 * stepPatience, Self.longestStep)
      ask(now)
    case .following:
      if reach.isSilent(now) {
        ask(now)
        return false
      }
      look(now)
      if now &- inquiry.askedAt < Self.infoPause { return false }
      inquiry.ask(next: next, now: now)
      return true
    }
    return false
  }

  /// Records that nothing is followed any more.
  mutating func end() { reach.end() }

  /// Whether something is to be done soon.
  var isWaiting: Bool { consumer.isWaiting || stage != .following }
}

/// The consumer that delivers the messages of the stream to this member, and the consumers before it.
///
/// Invariant: the messages of one consumer are accepted in order, each once.
struct StreamConsumer {
  enum Delivery {
    case nothing, heartbeat
    /// Messages are missing: another consumer is needed.
    case gap
    case message(JetStream.Place)
  }

  private let settings: GroupSettings
  private let inbox: String
  private let transport: any GroupTransport
  /// Each consumer has a number, which its subject contains.
  private(set) var generation: UInt64 = 0
  private var name = ""
  /// The messages that the consumer has delivered.
  private var delivered: UInt64 = 0
  /// An answer to the flow control of the consumer that waits for room.
  private var pendingFlow: String?

  init(_ settings: GroupSettings, inbox: String, _ transport: any GroupTransport) {
    (self.settings, self.inbox, self.transport) = (settings, inbox, transport)
  }

  var subject: String { "\(inbox)-log.\(generation)" }
  /// Whether something is to be done soon.
  var isWaiting: Bool { pendingFlow != nil }

  mutating func create(from next: UInt64) {
    if !name.isEmpty { transport.request(JetStream.deleteConsumer(settings.stream, name), reply: nil, "") }
    (name, delivered, pendingFlow) = ("", 0, nil)
    generation += 1
    transport.follow(subject)
    transport.request(
      JetStream.createConsumer(settings.stream), reply: "\(inbox).consumer.\(generation)",
      JetStream.consumer(settings.stream, deliver: subject, from: next))
  }

  mutating func didCreate(_ answer: JSONObject?) { name = answer?.string("name") ?? "" }

  mutating func accept(_ input: GroupInput, isBusy: Bool) -> Delivery {
    if input.status == "100" {
      if let reply = input.reply ?? input.stalled {
        if isBusy { pendingFlow = reply } else { transport.request(reply, reply: nil, "") }
      }
      // A heartbeat that knows of more messages than arrived.
      if let last = input.lastConsumer, last > delivered, input.reply == nil { return .gap }
      return .heartbeat
    }
    guard let place = JetStream.Place(input.reply) else { return .nothing }
    guard place.consumer == delivered &+ 1 else { return place.consumer > delivered ? .gap : .nothing }
    delivered = place.consumer
    return .message(place)
  }

  /// Lets the consumer go on when there is room again.
  mutating func attend(isBusy: Bool) {
    guard let reply = pendingFlow, !isBusy else { return }
    pendingFlow = nil
    transport.request(reply, reply: nil, "")
  }
}
