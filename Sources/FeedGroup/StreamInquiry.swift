import FeedJSON

/// Asks the servers for the state of the stream, and decides whether this member can follow it.
struct StreamInquiry {
  /// What an answer means for a member that wants to follow the stream.
  enum Verdict: Equatable {
    case usable
    /// The servers have less than was read. They may find the rest.
    case behind
    /// The stream cannot be followed.
    case lost(String)
  }

  /// Nanoseconds that a leader of the stream may take to find its end.
  private static let leaderPatience = 30 * second

  private let settings: GroupSettings
  private let identity: StreamIdentity
  private let inbox: String
  private let transport: any GroupTransport
  private let report: GroupReport
  /// What the servers told last of the stream, and when; nil before the first answer.
  private(set) var state: StreamState?
  private(set) var answeredAt: UInt64 = 0
  private(set) var askedAt: UInt64 = 0
  /// The next message to read at that time. What is delivered since then may be news to the answer.
  private(set) var next: UInt64 = 0
  /// Since when the servers have less than was read.
  private var behindSince: UInt64?
  private var hasWarned = false

  init(
    _ settings: GroupSettings, _ identity: StreamIdentity, inbox: String, _ transport: any GroupTransport,
    _ report: GroupReport
  ) {
    (self.settings, self.identity, self.inbox) = (settings, identity, inbox)
    (self.transport, self.report) = (transport, report)
  }

  mutating func ask(next: UInt64, now: UInt64) {
    (self.next, askedAt) = (next, now)
    transport.request(JetStream.streamInfo(settings.stream), reply: "\(inbox).info", "")
  }

  mutating func didAnswer(_ state: StreamState, now: UInt64) {
    (self.state, answeredAt) = (state, now)
    if hasWarned || state.isSafeInCluster { return }
    hasWarned = true
    report.note(
      "the servers of group \(settings.name) are older than nats-server 2.11; before 2.10.22, their copies of the log may differ "
        + "after one of them stood still: update them, or run one server", isWarning: true)
  }

  /// Whether the servers have less than was read when they were asked.
  var isBehind: Bool { state.map { $0.last &+ 1 < next } ?? false }

  mutating func verdict(_ state: StreamState, next: UInt64, now: UInt64) -> Verdict {
    do throws(GroupError) {
      let found = try StreamIdentity(state.description, stream: settings.stream)
      guard found.epoch == identity.epoch else {
        return .lost("\(GroupLog.oblivion): stream \(settings.stream) is another one (epoch \(found.epoch))")
      }
      // A member that began cut off, with an image of an older version, did not know the rules.
      guard found.rules == identity.rules else {
        return .lost(
          "requests of stream \(settings.stream) are executed by rules \(found.rules), not \(identity.rules)")
      }
      let differences = found.differences(from: identity.limits)
      guard differences.isEmpty else {
        return .lost("\(GroupError.otherLimits(group: settings.name, differences: differences))")
      }
    } catch {
      return .lost("\(error)")
    }
    if state.first > next && state.first > 1 {
      return .lost("the log was trimmed behind an image while this member was away")
    }
    // A server that leads the stream since a moment may not know its end yet.
    guard isBehind else {
      behindSince = nil
      return .usable
    }
    let since = behindSince ?? now
    behindSince = since
    if now &- since < Self.leaderPatience { return .behind }
    if state.last == 0 { return .lost("\(GroupLog.oblivion): stream \(settings.stream) is empty") }
    return .lost(
      "the stream ends with message \(state.last), and this member has read up to \(self.next - 1): the servers lost messages"
    )
  }
}

/// Since when the log of a group is unreachable, and why.
struct StreamReach {
  /// Nanoseconds without a message after which the consumer is silent.
  private static let silence = 2 * second
  /// Nanoseconds without an answer after which the stream has no leader.
  private static let patience = 6 * second

  /// Nil if it is reachable.
  private(set) var unreachableSince: UInt64?
  private(set) var reason = "not connected yet"
  /// When the stream's side was last heard of.
  private var heardAt: UInt64

  init(now: UInt64) { (heardAt, unreachableSince) = (now, now) }
  mutating func didFail(_ reason: String) { self.reason = reason }

  mutating func becomeUnreachable(_ reason: String, since time: UInt64) {
    // libnats does not always tell.
    self.reason = reason.isEmpty ? "the connection was lost" : reason
    unreachableSince = unreachableSince ?? time
  }

  /// Records that nothing is followed any more.
  mutating func end() { unreachableSince = unreachableSince ?? heardAt }

  mutating func didHear(_ now: UInt64) { heardAt = now }

  /// Looks whether a consumer that delivers is silent. Returns whether another one is needed.
  mutating func isSilent(_ now: UInt64) -> Bool {
    guard now &- heardAt >= Self.silence else { return false }
    becomeUnreachable("the servers do not answer", since: heardAt)
    return true
  }

  /// Looks whether the stream has a leader: a consumer may still be served by a server that cannot reach it. Returns whether the log
  /// has become reachable.
  /// - Parameter answeredAt: when the leader told the state of the stream.
  mutating func look(answeredAt: UInt64, now: UInt64) -> Bool {
    guard now &- answeredAt < Self.patience else {
      if unreachableSince == nil { becomeUnreachable("the stream has no leader", since: answeredAt) }
      return false
    }
    if unreachableSince == nil { return false }
    // A change that is refused from now on was sent to servers that can be read.
    (unreachableSince, reason) = (nil, "the servers do not confirm messages")
    return true
  }
}
