import TestSupport
import Testing

@testable import Simulator

/// Random histories of a whole daemon. Sources/README.md describes the simulator.
///
/// 300 histories of fixed seeds, which take about 15 seconds of CPU; 10,000 with `scripts/test --long`. `FEEDD_SIMULATIONS`
/// sets another number. Ten times fewer seeds are fresh in each run. `FEEDD_SEED` replays one. A failing seed prints the
/// shortest history found that still fails.
@Suite(.serialized) struct SimulationTests {
  @Test("no history breaks a promise")
  func histories() {
    if let seed = TestEffort.seed {
      _ = Self.play(seed)
      return
    }
    let count = UInt64(max(1, TestEffort.count(300, long: 10_000, variable: "FEEDD_SIMULATIONS")))
    var events: [String: Int] = [:]
    for seed in 1...count {
      guard let met = Self.play(seed) else { return }
      events.merge(met) { $0 + $1 }
    }
    let fresh = UInt64.random(in: 1 << 48..<1 << 62)
    for seed in fresh..<fresh + count / 10 where Self.play(seed) == nil { return }
    guard count >= 300 else { return }
    var required = [
      "delta", "part", "reset", "resumed", "bookmark", "end", "error", "bye badFrame", "bye limit", "bye shutdown",
      "failed batch", "kill", "power loss", "new epoch", "changes lost",
    ]
    if count >= 3000 { required += ["bye frameTimeout", "unacknowledged batch kept"] }
    for event in required {
      #expect(events[event, default: 0] > 0, "no history met \(event): \(events)")
    }
  }

  /// Plays the history of a seed. Returns what its clients met; nil after reporting a short version of a failure.
  private static func play(_ seed: UInt64) -> [String: Int]? {
    let history = History(seed: seed)
    switch history.play() {
    case .success(let events): return events
    case .failure(let failure):
      let (short, last) = history.shortened(failure)
      let trace = last.trace.joined(separator: "\n  ")
      Issue.record(
        "FEEDD_SEED=\(seed): \(last.message)\n\(short.steps.count) of \(history.steps.count) steps:\n  \(trace)")
      return nil
    }
  }

  @Test("a seed replays exactly")
  func determinism() throws {
    for seed in UInt64(1)...4 {
      let history = History(seed: seed)
      let one = try Simulation(seed: seed)
      try one.run(history.steps)
      let two = try Simulation(seed: seed)
      try two.run(history.steps)
      #expect(one.trace == two.trace)
      #expect(one.events == two.events)
    }
  }

  @Test("the auditor notices each kind of sabotage", arguments: Sabotage.allCases)
  func sabotage(_ sabotage: Sabotage) throws {
    let failing = (UInt64(1)...40).lazy.map { History(seed: $0, sabotage: sabotage) }.compactMap { history in
      if case .failure(let failure) = history.play() { (history, failure) } else { nil }
    }
    let (history, failure) = try #require(failing.first)
    let (short, last) = history.shortened(failure)
    #expect(short.steps.count < history.steps.count)
    #expect(!last.message.isEmpty)
  }
}
