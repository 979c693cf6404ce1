import TestSupport
import Testing

/// Random histories of a whole daemon: the shipped turn and engine over a faulty network, a log that stores late, fails and
/// crashes, a clock by hand, and clients that push, watch, resume, stall, lie and leave.
///
/// 400 histories of fixed seeds, 10,000 with `scripts/test --long`; `FEEDD_SIMULATIONS` sets another number. Ten times fewer
/// seeds are fresh in each run. `FEEDD_SEED` replays one. A failing seed prints the shortest history found that still fails.
@Suite(.serialized) struct SimulationTests {
  @Test("no history breaks a promise")
  func histories() {
    if let seed = TestEffort.seed {
      _ = Self.play(seed)
      return
    }
    let count = UInt64(max(1, TestEffort.count(400, long: 10_000, variable: "FEEDD_SIMULATIONS")))
    var events: [String: Int] = [:]
    for seed in 1...count {
      guard let met = Self.play(seed) else { return }
      events.merge(met) { $0 + $1 }
    }
    let fresh = UInt64.random(in: 1 << 48..<1 << 62)
    for seed in fresh..<fresh + count / 10 where Self.play(seed) == nil { return }
    guard count >= 400 else { return }
    for event in [
      "delta", "part", "reset", "resumed", "bookmark", "end", "error", "bye badFrame", "bye frameTimeout", "bye limit",
      "bye shutdown",
    ] {
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
    for seed in UInt64(1)...3 {
      let history = History(seed: seed)
      let (one, two) = (Simulation(seed: seed), Simulation(seed: seed))
      try one.run(history.steps)
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

/// The steps of a history, which can be played and shortened.
struct History {
  struct Failure: Error {
    let message: String
    /// What was done, a line for each step.
    let trace: [String]
  }

  let seed: UInt64
  var sabotage: Sabotage?
  private(set) var steps: [UInt64]

  init(seed: UInt64, sabotage: Sabotage? = nil, count: Int = 40) {
    self.seed = seed
    self.sabotage = sabotage
    steps = Simulation.steps(of: seed, count: count)
  }

  /// Plays the history. Returns what its clients met.
  func play() -> Result<[String: Int], Failure> {
    let simulation = Simulation(seed: seed, sabotage: sabotage)
    do {
      try simulation.run(steps)
      return .success(simulation.events)
    } catch {
      return .failure(Failure(message: "\(error)", trace: simulation.trace))
    }
  }

  /// Plays shorter and shorter versions, and keeps those that still fail: without half of the steps, then without a quarter,
  /// and so on. At most 600 are played.
  func shortened(_ failure: Failure) -> (History, Failure) {
    var (best, last) = (self, failure)
    var budget = 600
    var length = max(1, steps.count / 2)
    while length > 0 && budget > 0 {
      var start = 0
      while start < best.steps.count && budget > 0 {
        var shorter = best
        shorter.steps.removeSubrange(start..<min(start + length, best.steps.count))
        budget -= 1
        if case .failure(let failure) = shorter.play() { (best, last) = (shorter, failure) } else { start += length }
      }
      length /= 2
    }
    return (best, last)
  }
}

/// A fault that no daemon may have, to show that the auditor would notice it.
enum Sabotage: CaseIterable {
  /// A crash loses the last batch that was reported as stored.
  case forgetsABatch
  /// A batch is reported as failed, and replayed after a crash.
  case keepsAFailedBatch
  /// A frame to a client is lost.
  case losesAFrame
}
