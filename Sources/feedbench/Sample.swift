import FeedSystem
import Synchronization

/// The times of several runs of one case, in nanoseconds.
struct Sample {
  private let times: [Double]

  init(_ times: [Double]) { self.times = times.sorted() }

  var best: Double { times.first ?? 0 }
  var median: Double { times.isEmpty ? 0 : times[times.count / 2] }
  /// The relative distance of the median from the best: the noise of the machine.
  var noise: Double { best > 0 ? median / best - 1 : 0 }

  /// Measures `runs` runs of `body`, after one to warm up.
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

/// Consumes results, so that the compiler cannot remove their computation.
enum Sink {
  private static let value = Atomic<Int>(0)

  @inline(never)
  static func take(_ number: Int) { value.store(number, ordering: .relaxed) }
}
