import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Connections that always have more input take turns, and so do users.
struct FairInputTests {
  private let harness = EngineHarness()

  private static func pings(_ bytes: Int) -> [UInt8] {
    let ping = EngineHarness.request("ping")
    return ping.repeated(bytes / ping.count)
  }

  /// Connects another user, and before that `count` connections of one user, each with a megabyte of requests.
  private func flood(_ count: Int) -> (many: [ConnectionID], one: ConnectionID) {
    let many = harness.connect((1...count).map { Peer(uid: 1001, gid: 1001, pid: Int32($0)) })
    let one = harness.connect(uid: 1002)
    let pings = Self.pings(1 << 20)
    for client in many { harness.supply(client, pings) }
    return (many, one)
  }

  @Test(arguments: [1, 5, 100]) func anotherUserIsAnsweredWithinTwoTurns(count: Int) {
    let (many, one) = flood(count)
    for _ in 0..<20 {
      harness.supply(one, Self.pings(64))
      harness.turnOnce()
      if harness.halfFrame(of: one) == 0 { harness.turnOnce() }
      expectEqual(harness.take(one).count, 1)
      for client in many { _ = harness.take(client) }
    }
  }

  @Test func connectionsOfOneUserTakeTurns() {
    let (many, _) = flood(40)
    var turns = [Int](repeating: 0, count: 40)
    for _ in 0..<60 {
      harness.turnOnce()
      for (place, client) in many.enumerated() where !harness.take(client).isEmpty { turns[place] += 1 }
    }
    // A turn takes the input of two or three connections.
    expect(turns.allSatisfy { (2...5).contains($0) }, "\(turns)")
  }

  /// The whole turn is used for a connection whose frames are long: the rest of a frame is not read by a turn of its own.
  @Test func longFramesShareTurns() {
    let client = harness.connect(uid: 1001)
    let pad = String(repeating: "x", count: 20_000)
    let frame = EngineHarness.request("ping", #"{"pad":"\#(pad)"}"#)
    harness.supply(client, frame.repeated(60))
    var answers: [Int] = []
    while answers.reduce(0, +) < 60 {
      harness.turnOnce()
      answers.append(harness.take(client).count)
    }
    expect(answers.count <= 10, "\(answers)")
    expect(answers.allSatisfy { $0 <= Intake.turnCapacity / frame.count }, "\(answers)")
  }

  @Test func inputOfAClosedConnectionIsForgotten() {
    let (many, one) = flood(40)
    harness.turnOnce()
    for client in many { harness.drop(client) }
    harness.turn()
    expectEqual(harness.engine.sessions.count, 1)
    harness.deliver(one, Self.pings(64))
    expectEqual(harness.take(one).count, 1)
  }

  /// Whole frames that could not be taken, and a frame of which the rest follows, are taken when it is their turn.
  @Test func nothingIsLostOrReordered() {
    let clients = harness.connect((1...30).map { Peer(uid: UInt32($0 % 3), gid: 1, pid: Int32($0)) })
    let request = { (id: Int) in
      EngineHarness.request("ping", #"{"pad":"\#(String(repeating: "x", count: id % 700))"}"#, id: id)
    }
    let stream = (0..<1000).flatMap(request)
    var answers = [[String]](repeating: [], count: 30)
    for start in stride(from: 0, to: stream.count, by: 70_001) {
      for client in clients { harness.supply(client, Array(stream[start..<min(start + 70_001, stream.count)])) }
      for (place, client) in clients.enumerated() {
        harness.turnOnce()
        answers[place] += harness.take(client)
      }
    }
    harness.turn()
    for (place, client) in clients.enumerated() {
      let ids = (answers[place] + harness.take(client)).map { Value($0)?["id"]?.int ?? -1 }
      expectEqual(ids, Array(0..<1000), "connection \(place)")
    }
  }
}
