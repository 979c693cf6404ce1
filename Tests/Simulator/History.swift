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

  /// - Parameter count: the number of steps; nil for that of the seed.
  init(seed: UInt64, sabotage: Sabotage? = nil, count: Int? = nil) {
    self.seed = seed
    self.sabotage = sabotage
    steps = Simulation.steps(of: seed, count: count ?? Self.length(of: seed))
  }

  /// Most histories are short, so that many fit into a run of the tests; the longest build large trees of feeds.
  private static func length(of seed: UInt64) -> Int {
    if seed % 499 == 0 { return 120 }
    return seed % 39 == 0 ? 40 : 3 + Int(seed % 5)
  }

  /// Plays the history. Returns what its clients met.
  func play() -> Result<[String: Int], Failure> { SeedsInPlay.during(seed) { replay() } }

  private func replay() -> Result<[String: Int], Failure> {
    var simulation: Simulation?
    do {
      let made = try Simulation(seed: seed, sabotage: sabotage)
      simulation = made
      try made.run(steps)
      return .success(made.events)
    } catch {
      return .failure(Failure(message: "\(error)", trace: simulation?.trace ?? []))
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
  /// Syncs of the disk do nothing.
  case losesSyncs
}
