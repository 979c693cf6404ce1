import FeedJSON
import FeedModel
import FeedWire
import TestSupport
import Testing

@testable import FeedEngine

/// The types that own the state of connections, each tested alone: the table of sessions, the quotas, the queue of requests,
/// the outbox and the long answers.
struct OwnersTests {
  private static let start = Instant(nanoseconds: 0)

  private static func peer(_ uid: UInt32) -> Peer { Peer(uid: uid, gid: uid, pid: 1) }

  private static func session(_ index: UInt32, uid: UInt32 = 1) -> Session {
    Session(handle: SessionHandle(index: index, generation: 1), peer: peer(uid), connectedAt: start)
  }

  private final class EndlessJob: Job {
    func advance(budget: inout Int) -> Bool { false }
    let memory = 100
    func appendResult(to out: inout ByteBuffer) {}
  }

  private static func beginAnswer(_ session: Session) {
    let reply = Reply(to: session, id: nil, maxFrame: 1024, isDiscarded: true)
    session.line.work = (EndlessJob(), JobTicket(reply, Parameters(object: nil)))
  }

  @Test func numbersAreReusedAndHandlesAreNot() {
    var sessions = Sessions(now: Self.start)
    let first = sessions.open(Self.peer(1), now: Self.start)
    let second = sessions.open(Self.peer(2), now: Self.start)
    sessions.close(first)
    expect(sessions[first.handle] == nil && sessions[first.id] == nil)
    let third = sessions.open(Self.peer(3), now: Self.start)
    sessions.checkInvariants()
    expect(third.id == first.id && third.handle != first.handle)
    expect(sessions[first.handle] == nil && sessions[third.handle] === third)
    expectEqual(sessions.all.map(\.peer.uid), [3, 2])
    expect(sessions.count == 2 && !sessions.isEmpty)
    sessions.close(second)
    sessions.close(third)
    expect(sessions.isEmpty && sessions[ConnectionID(rawValue: 7)] == nil)
  }

  @Test func resumableSessionsAreReturnedOnce() {
    var sessions = Sessions(now: Self.start)
    let session = sessions.open(Self.peer(1), now: Self.start)
    sessions.addResumable(session)
    expect(sessions.hasResumable && sessions.takeResumable() == [session.handle])
    expect(!sessions.hasResumable && sessions.takeResumable() == [])
  }

  /// Sessions open, hold more or fewer bytes, and close at random: the totals stay the sums of the sessions and end at zero.
  @Test(arguments: 1...10) func quotasAreSumsOverSessions(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var quotas = Quotas()
    var open: [Session] = []
    for _ in 0..<300 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        let session = Self.session(UInt32(open.count), uid: UInt32.random(in: 1...3, using: &random))
        quotas.admit(session)
        open.append(session)
      case 1 where !open.isEmpty: quotas.release(open.remove(at: Int.random(in: 0..<open.count, using: &random)))
      default:
        guard let session = open.randomElement(using: &random) else { continue }
        quotas.charge(session, Int.random(in: 0...1000, using: &random), limit: 1500)
      }
      quotas.checkInvariants(open)
      for uid in quotas.takeOverLimit() { expect((1...3).contains(uid)) }
    }
    for session in open { quotas.release(session) }
    expect(quotas.connections == 0 && (1...3).allSatisfy { quotas.bytes(of: $0) == 0 })
    quotas.checkInvariants([])
  }

  @Test func userOverTheLimitIsListedOnce() {
    var quotas = Quotas()
    let sessions = [Self.session(0), Self.session(1)]
    for session in sessions { quotas.admit(session) }
    quotas.charge(sessions[0], 60, limit: 100)
    expect(!quotas.hasOverLimit)
    quotas.charge(sessions[1], 60, limit: 100)
    quotas.charge(sessions[1], 70, limit: 100)
    expect(quotas.takeOverLimit() == [1] && !quotas.hasOverLimit)
    quotas.charge(sessions[0], 50, limit: 100)
    expect(!quotas.hasOverLimit, "holding less must not list the user")
  }

  @Test func logLinesAboutClosedConnectionsAreRateLimited() {
    let identity = ServerIdentity(version: "0", epoch: "e", pid: 1, uid: 0, durability: "memory")
    var status = Status(identity, Limits(), startedAt: Self.start)
    var lines: [LogLevel: Int] = [:]
    var events: [EngineEvent] = []
    status.log = { events.append($0) }
    for _ in 0..<100 { status.reportClosing(.warning, "closed", now: Self.start) }
    for event in events { lines[event.level, default: 0] += 1 }
    expectEqual(lines, [.warning: ClosingLines.perSecond, .debug: 100 - ClosingLines.perSecond])
    events = []
    status.reportClosing(.info, "closed", now: Self.start.adding(seconds: 1))
    expectEqual(events.map(\.level), [.warning, .info])
    expectEqual(events.first?.message.hasPrefix("\(100 - ClosingLines.perSecond) more connections"), true)
  }

  @Test func reserveExceedsBothConnectionLimits() {
    var limits = Limits()
    limits.maxConnections = 2
    limits.maxConnectionsPerUser = 1
    var quotas = Quotas()
    quotas.admit(Self.session(0, uid: 1))
    expectEqual(quotas.refusal(of: Self.peer(1), limits: limits, reserve: 0)?.contains("maxConnectionsPerUser"), true)
    expectEqual(quotas.refusal(of: Self.peer(1), limits: limits, reserve: 1), nil)
    quotas.admit(Self.session(1, uid: 2))
    expectEqual(quotas.refusal(of: Self.peer(3), limits: limits, reserve: 0)?.contains("maxConnections "), true)
    expectEqual(quotas.refusal(of: Self.peer(3), limits: limits, reserve: 1), nil)
  }

  @Test func requestThatHoldsTheLineBlocksFurtherRequests() {
    var line = RequestLine()
    expect(line.isEmpty && line.takesMore && line.isDone)
    line.add(bytes: 10, isRead: false, isHeld: false)
    line.add(bytes: 5, isRead: true, isHeld: true)
    expect(line.bytes == 15 && !line.takesMore)
    line.remove(bytes: 10, isRead: false)
    expect(!line.takesMore)
    line.remove(bytes: 5, isRead: true)
    expect(line.isEmpty && line.takesMore && line.bytes == 0)
    line.isCut = true
    expect(!line.takesMore)
  }

  @Test func numberOfReadsInALineIsBounded() {
    var line = RequestLine()
    var count = 0
    while line.takesMore {
      line.add(bytes: 1, isRead: true, isHeld: false)
      count += 1
    }
    expectEqual(count, 32)
  }

  @Test func outboxListsASessionOnce() {
    var outbox = Outbox()
    let sessions = [Self.session(0), Self.session(1)]
    for session in sessions + sessions { outbox.list(session) }
    outbox.checkInvariants(sessions)
    var seen: [ConnectionID] = []
    outbox.forEach { seen.append($0.id) }
    expectEqual(seen, sessions.map(\.id))
    outbox.remove(sessions[0])
    outbox.checkInvariants(sessions)
    outbox.answers.bytes.append("kept")
    sessions[1].output.append(outbox.answers, from: 0, to: 4)
    outbox.finish { $0.output.isBlocked = true }
    expectEqual(sessions.map { $0.output.isBlocked }, [false, true])
    expect(sessions[1].output.backlog == 4 && outbox.answers.bytes.isEmpty)
    expect(sessions.allSatisfy { !$0.isInOutbox })
  }

  @Test func longAnswersAreListedUntilComplete() {
    var answers = LongAnswers()
    let sessions = (0..<3).map { Self.session($0) }
    for session in sessions {
      Self.beginAnswer(session)
      answers.add(session)
      answers.add(session)
    }
    answers.checkInvariants(sessions)
    expectEqual(answers.count, 3)
    for session in sessions {
      expect(answers.takeFirst() === session)
      answers.add(session)
    }
    answers.checkInvariants(sessions)
    expect(answers.takeFirst() === sessions[0])
    sessions[0].line.cancelAnswers()
    for session in sessions { answers.remove(session) }
    for session in sessions { session.line.cancelAnswers() }
    answers.checkInvariants(sessions)
    expect(answers.isEmpty)
  }
}
