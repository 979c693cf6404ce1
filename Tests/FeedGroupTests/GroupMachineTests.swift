import FeedModel
import TestSupport
import Testing

@testable import FeedGroup

/// Random histories of three members on servers that delay, lose and repeat messages, change their leader and break
/// connections.
struct GroupMachineTests {
  /// The histories of each of four parts; more with FEEDD_LONG.
  private static let count = TestEffort.count(8, long: 1500, variable: "FEEDD_GROUP_HISTORIES")

  @Test(arguments: 0..<4) func membersExecuteTheSameBatchesOnce(part: Int) throws {
    if let seed = TestEffort.seed {
      if part == 0 { try play(seed) }
      return
    }
    for seed in 0..<Self.count { try play(UInt64(part * 100_000 + seed)) }
  }

  private func play(_ seed: UInt64) throws {
    let stream = SimulatedStream(seed: seed, discardsRepeats: seed % 2 == 0)
    let members = try (0..<3).map { try SimulatedMember($0, stream) }
    // They own each other.
    defer { for member in members { member.end() } }
    for member in members { member.connect() }
    stream.loss = [0, 0.01, 0.05][Int(seed % 3)]
    for _ in 0..<1200 {
      act(members, stream)
      stream.advance(by: 5_000_000)
      for member in members { member.step() }
    }
    // The faults end, and everything is resolved.
    stream.loss = 0
    for member in members where !member.isConnected { member.connect() }
    for member in members where member.hasLeft { member.rejoin() }
    settle(members, stream)
    for member in members {
      try check(member.canAppend, seed, "batches of member \(member.index) have no outcome: \(member.lost ?? "")")
      member.append(bytes: 40)
    }
    settle(members, stream)
    try compare(members, seed)
  }

  private func settle(_ members: [SimulatedMember], _ stream: SimulatedStream) {
    for _ in 0..<2000 {
      stream.advance(by: 5_000_000)
      for member in members { member.step() }
      if members.allSatisfy(\.isSettled) && stream.isIdle { return }
    }
  }

  @Test func aStreamWithoutALeaderIsUnreachable() throws {
    let stream = SimulatedStream(seed: 1, discardsRepeats: false)
    let member = try SimulatedMember(0, stream)
    defer { member.end() }
    member.connect()
    settle([member], stream)
    expect(member.machine.unreachableSince == nil)
    stream.loseLeader(for: 10_000_000_000)
    for _ in 0..<1800 {
      stream.advance(by: 5_000_000)
      member.step()
    }
    expect(member.machine.unreachableSince != nil)
    settle([member], stream)
    expect(member.machine.unreachableSince == nil)
  }

  @Test func serversThatAnswerLateAreFollowed() throws {
    let stream = SimulatedStream(seed: 2, discardsRepeats: true)
    stream.delay = 600_000_000
    let member = try SimulatedMember(0, stream)
    defer { member.end() }
    for _ in 0..<2 {
      member.connect()
      settle([member], stream)
      expect(member.machine.unreachableSince == nil)
      // The second time it compares the last message.
      expect(member.machine.table.position > 0)
      member.disconnect()
    }
  }

  @Test(arguments: 0..<20) func batchesBehindALeaveAreRefusedAndTheMemberStaysAway(seed: UInt64) throws {
    let stream = SimulatedStream(seed: seed, discardsRepeats: seed % 2 == 0)
    let members = try (0..<2).map { try SimulatedMember($0, stream) }
    defer { for member in members { member.end() } }
    for member in members { member.connect() }
    for _ in 0..<2000 where members[1].machine.table.members.count < 2 {
      stream.advance(by: 5_000_000)
      for member in members { member.step() }
    }
    members[0].append(bytes: 40)
    members[0].leave()
    members[0].append(bytes: 40)
    // A message that is lost is sent again.
    if seed % 4 > 1 { members[0].disconnect() }
    settle(members, stream)
    if !members[0].isConnected { members[0].connect() }
    settle(members, stream)
    let refusal = "this member left the group; rejoin with: feedclient group join"
    let outcomes = members[0].outcomes
    expect(outcomes[2] == SimulatedMember.Outcome(failure: refusal) || seed % 4 > 1 && outcomes[2]?.isStored == false)
    expect(seed % 4 > 1 || outcomes[1]?.isStored == true)
    expectEqual(members[1].machine.table.members.values.map(\.member), ["m1"])
    members[0].append(bytes: 40)
    settle(members, stream)
    expectEqual(members[0].outcomes[3], SimulatedMember.Outcome(failure: refusal))
    members[0].rejoin()
    members[0].append(bytes: 40)
    settle(members, stream)
    expectEqual(members[0].outcomes[4]?.isStored, true)
    expectEqual(Set(members[1].machine.table.members.values.map(\.member)), ["m0", "m1"])
  }

  @Test(arguments: 0..<4) func aMemberThatHasLeftPublishesNoImage(seed: UInt64) throws {
    let stream = SimulatedStream(seed: seed, discardsRepeats: true)
    let members = try (0..<2).map { try SimulatedMember($0, stream) }
    defer { for member in members { member.end() } }
    for member in members { member.connect() }
    settle(members, stream)
    members[0].append(bytes: 40)
    settle(members, stream)
    members[0].leave()
    settle(members, stream)
    members[0].machine.requestImage()
    settle(members, stream)
    expect(stream.images.isEmpty)
    expect(members[1].machine.table.image == nil)
    members[0].rejoin()
    settle(members, stream)
    members[0].machine.requestImage()
    settle(members, stream)
    expectEqual(stream.images.count, 1)
    expectEqual(members[1].machine.table.image?.host, "h0")
  }

  @Test(arguments: 0..<8) func aMemberThatStoodStillPublishesNoOldImage(seed: UInt64) throws {
    let stream = SimulatedStream(seed: seed, discardsRepeats: true)
    let members = try (0..<2).map { try SimulatedMember($0, stream, imageBytes: 100) }
    defer { for member in members { member.end() } }
    for member in members { member.connect() }
    settle(members, stream)
    for _ in 0..<150 {
      if members[1].canAppend { members[1].append(bytes: 100) }
      for _ in 0..<40 {
        stream.advance(by: 5_000_000)
        members[1].step()
      }
    }
    expect(stream.images.count > 1)
    settle(members, stream)
    expectEqual(stream.images.map(\.position), stream.images.map(\.position).sorted())
  }

  @Test func membersNoticeThatTheServersLostMessages() throws {
    if let seed = TestEffort.seed {
      _ = try playLoss(seed)
      return
    }
    let count = TestEffort.count(6, long: 1000, variable: "FEEDD_GROUP_HISTORIES")
    var noticed = 0
    for seed in 0..<UInt64(count) { noticed += try playLoss(seed) }
    expect(noticed > count)
  }

  /// The servers lose the last messages while members store others: those that read the lost ones begin again. Returns how often.
  private func playLoss(_ seed: UInt64) throws -> Int {
    var noticed = 0
    let stream = SimulatedStream(seed: seed, discardsRepeats: seed % 4 < 2)
    var members = try (0..<3).map { try SimulatedMember($0, stream) }
    defer { for member in members { member.end() } }
    for member in members { member.connect() }
    func step(_ count: Int, _ act: (Int) -> Void) {
      for step in 0..<count {
        act(step)
        stream.advance(by: 5_000_000)
        for member in members { member.step() }
        for member in members where member.lost != nil {
          noticed += 1
          member.startOver()
        }
      }
    }
    step(1500) { step in
      stream.loss = step < 600 || seed % 2 == 0 ? 0 : 0.02
      if step == 700 || step > 700 && seed % 3 == 0 && stream.random.chance(0.002) {
        stream.loseTail(of: Int.random(in: 1...20, using: &stream.random))
      }
      for member in members where member.canAppend && stream.random.chance(0.1) { member.append(bytes: 40) }
      if seed % 2 == 1 { act(members, stream, 0) }
      if seed % 5 == 1 && stream.random.chance(0.01) { members[0].machine.requestImage() }
    }
    stream.loss = 0
    for member in members where !member.isConnected { member.connect() }
    for member in members where member.hasLeft { member.rejoin() }
    func settle() {
      step(4000) { _ in }
      // Until what was sent just now has arrived.
      for _ in 0..<400 where !members.allSatisfy(\.isSettled) { step(10) { _ in } }
    }
    step(4500) { _ in }
    settle()
    try compareLogs(members, seed)
    // A member that reads what the servers have now.
    members.append(try SimulatedMember(3, stream))
    members[3].connect()
    settle()
    try compareLogs(members, seed)
    return noticed
  }

  private func compareLogs(_ members: [SimulatedMember], _ seed: UInt64) throws {
    for member in members {
      try check(member.isSettled && member.lost == nil, seed, "member \(member.index) waits: \(member.progress)")
      let place = zip(member.executed, members[0].executed).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      try check(
        member.executed == members[0].executed, seed, "member \(member.index) differs from batch \(place ?? -1) on")
    }
  }

  private func act(_ members: [SimulatedMember], _ stream: SimulatedStream, _ appending: Double = 0.2) {
    for member in members {
      if stream.random.chance(appending), member.canAppend {
        member.append(bytes: stream.random.chance(0.003) ? 1_200_000 : 40)
      }
      if stream.random.chance(0.003) {
        if member.isConnected { member.disconnect() } else { member.connect() }
      }
      if !member.isConnected, stream.random.chance(0.01) { member.connect() }
      if stream.random.chance(0.005) { member.writeImage() }
      if stream.random.chance(0.002) { member.restart() }
      if stream.random.chance(0.001) {
        member.leave()
        if stream.random.chance(0.5) { member.rejoin() }
      }
      if member.hasLeft, stream.random.chance(0.01) { member.rejoin() }
    }
    if stream.random.chance(0.002) {
      stream.loseLeader(for: UInt64.random(in: 1...5_000_000_000, using: &stream.random))
    }
  }

  /// A history that went wrong. Expectations would print all batches.
  private struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  private func check(_ condition: Bool, _ seed: UInt64, _ fault: @autoclosure () -> String) throws(Fault) {
    if !condition { throw Fault(description: "seed \(seed): \(fault())") }
  }

  private func compare(_ members: [SimulatedMember], _ seed: UInt64) throws {
    let all = members[0].executed
    for member in members {
      try check(member.lost == nil, seed, member.lost ?? "")
      let place = zip(member.executed, all).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      try check(
        place == nil && member.executed.count == all.count, seed,
        "member \(member.index) executed \(member.executed.count) batches and the first one \(all.count), the same up to "
          + "\(place ?? -1)")
    }
    let texts = all.map { String($0.prefix { $0 != ";" }) }
    let executed = Set(texts)
    try check(executed.count == texts.count, seed, "a batch was executed twice")
    for member in members {
      for (number, outcome) in member.outcomes {
        let name = "m\(member.index)-\(number)"
        try check(!(outcome.isStored && outcome.failure != nil), seed, "\(name) has two outcomes")
        if outcome.isStored { try check(executed.contains(name), seed, "\(name) was acknowledged and is lost") }
        // Nobody was told what became of it.
        if outcome.isForgotten { continue }
        if let failure = outcome.failure, executed.contains(name) {
          try check(failure.contains("may be stored"), seed, "\(name) was refused and executed: \(failure)")
        }
      }
      try check(member.canAppend, seed, "batches of member \(member.index) have no outcome")
      try check(member.lastIsStored, seed, "member \(member.index) stores nothing without faults")
    }
    // What a member refuses hardly ever has an effect.
    let refused = members.flatMap { member in
      member.outcomes.filter { $0.value.failure != nil }.map { "m\(member.index)-\($0.key)" }
    }
    let stored = refused.count { executed.contains($0) }
    try check(stored <= refused.count / 2 + 4, seed, "\(stored) of \(refused.count) refused batches had an effect")
  }
}
