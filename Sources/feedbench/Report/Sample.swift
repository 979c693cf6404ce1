import FeedSystem
/// What several runs of one case took, in nanoseconds.
struct Sample {
  private let times: [Double]

  init(_ times: [Double]) { self.times = times.sorted() }

  var best: Double { times.first ?? 0 }
  var median: Double { times.isEmpty ? 0 : times[times.count / 2] }
  /// How far the median lies above the best, as a part of the best: the noise of the machine.
  var noise: Double { best > 0 ? median / best - 1 : 0 }

  /// Runs `body` so many times, after once to warm up, and times each run.
  static func measure(runs: Int, _ body: () throws -> Void) rethrows -> Sample {
    var times: [Double] = []
    for run in 0...runs {
      let start = ProcessorClock.now
      try body()
      let end = ProcessorClock.now
      if run > 0 { times.append(Double(end - start)) }
    }
    return Sample(times)
  }
}
