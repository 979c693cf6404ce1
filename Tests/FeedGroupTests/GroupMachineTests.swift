import FeedModel
import TestSupport
import Testing

@testable import FeedGroup

/// Random histories of three members on servers that delay, lose and repeat messages, change their leader and break
/// connections.
@Suite struct GroupMachineTests {
  /// The histories of each part; more with FEEDD_LONG.
  private static let count = TestEffort.count(4, long: 100)

  @Test(arguments: 0..<4) func membersExecuteTheSameBatchesOnce(part: Int) throws {
    for seed in 0..<Self.count { try play(UInt64(part * 1000 + seed)) }
  }

  private func play(_ seed: UInt64) throws {
    let stream = SimulatedStream(seed: seed)
    let members = try (0..<3).map { try SimulatedMember($0, stream) }
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
    for _ in 0..<2000 {
      stream.advance(by: 5_000_000)
      for member in members { member.step() }
    }
    try compare(members, seed)
  }

  private func act(_ members: [SimulatedMember], _ stream: SimulatedStream) {
    for member in members {
      if stream.random.chance(0.2), member.canAppend {
        member.append(bytes: stream.random.chance(0.01) ? 1_200_000 : 40)
      }
      if stream.random.chance(0.003) {
        if member.isConnected { member.disconnect() } else { member.connect() }
      }
      if !member.isConnected, stream.random.chance(0.01) { member.connect() }
    }
    if stream.random.chance(0.002) { stream.loseLeader(for: UInt64.random(in: 1...5_000_000_000, using: &stream.random)) }
  }

  private func compare(_ members: [SimulatedMember], _ seed: UInt64) throws {
    let all = members[0].executed
    for member in members {
      try #require(member.lost == nil, "seed \(seed): \(member.lost ?? "")")
      try #require(member.executed.count == all.count && member.executed == all, "seed \(seed): other batches")
    }
    let texts = all.map { $0.prefix { $0 != ";" } }
    try #require(Set(texts).count == texts.count, "seed \(seed): a batch was executed twice")
    let executed = Set(texts)
    for (index, member) in members.enumerated() {
      for (number, outcome) in member.outcomes {
        let wasExecuted = executed.contains("m\(index)-\(number)")
        try #require(outcome.isStored != (outcome.failure != nil), "seed \(seed): batch \(number) has two outcomes")
        if outcome.isStored { try #require(wasExecuted, "seed \(seed): an acknowledged batch is lost") }
        if let failure = outcome.failure, wasExecuted {
          try #require(failure.contains("may be stored"), "seed \(seed): a refused batch was executed")
        }
      }
      try #require(member.canAppend, "seed \(seed): batches have no outcome")
      try #require(member.outcomes.values.contains { $0.isStored }, "seed \(seed): nothing was stored")
    }
    // What a member refuses hardly ever has an effect.
    let refused = members.enumerated().flatMap { index, member in
      member.outcomes.filter { $0.value.failure != nil }.map { "m\(index)-\($0.key)" }
    }
    let stored = refused.filter { executed.contains(Substring($0)) }
    #expect(stored.count <= refused.count / 2 + 4, "seed \(seed): \(stored.count) of \(refused.count)")
  }
}
