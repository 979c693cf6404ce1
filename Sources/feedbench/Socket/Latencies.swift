/// How long each of many things took.
struct Latencies {
  private var times: [UInt64] = []

  mutating func add(_ nanoseconds: UInt64) { times.append(nanoseconds) }

  /// Microseconds: the median, the 99th and the 99.9th of a hundred, and the longest.
  var metrics: [Metric] {
    let sorted = times.sorted()
    func percentile(_ part: Double) -> Double {
      guard let last = sorted.last else { return 0 }
      let index = Int(Double(sorted.count) * part)
      return Double(index < sorted.count ? sorted[index] : last) / 1000
    }
    return [
      .microseconds("p50", percentile(0.5)), .microseconds("p99", percentile(0.99)),
      .microseconds("p99.9", percentile(0.999)), .microseconds("max", percentile(1)),
    ]
  }
}
