import FeedJSON
import FeedSystem

/// Prints each measurement at once, as a line of a table or as a JSON object.
struct Report {
  static let defaultRuns = 5

  let command: String
  let runs: Int
  let asJSON: Bool
  private var lastTitle = ""

  init(command: String, runs: Int, asJSON: Bool) {
    (self.command, self.runs, self.asJSON) = (command, runs, asJSON)
  }

  /// Begins a group of cases.
  mutating func title(_ title: String) throws {
    lastTitle = title
    if !asJSON { try print("\(title)\n") }
  }

  /// Prints the result of one case.
  /// - Parameter noise: see ``Sample/noise``; nil if it does not apply.
  func add(_ name: String, _ metrics: [Metric], noise: Double? = nil) throws {
    try print(asJSON ? json(name, metrics, noise) : line(name, metrics, noise))
  }

  /// Prints the time of `count` operations.
  /// - Parameter bare: the time of as many simpler operations, to which the ratio is printed.
  func add(_ name: String, _ sample: Sample, count: Int, bare: Sample? = nil) throws {
    let each = sample.best / Double(count)
    var metrics = [Metric.nanoseconds(each)]
    if let bare { metrics.append(.ratio(sample.best / bare.best, to: "bare")) }
    try add(name, metrics, noise: sample.noise)
  }

  private func line(_ name: String, _ metrics: [Metric], _ noise: Double?) -> String {
    var line = "  " + Figures.left(name, 46)
    for metric in metrics {
      line += Figures.right(Figures.text(metric.value), 9) + " " + Figures.left(metric.unit, 8)
    }
    if let noise { line += "  ±\(Figures.text(noise * 100, decimals: 0)) %" }
    return line + "\n"
  }

  private func json(_ name: String, _ metrics: [Metric], _ noise: Double?) -> String {
    var out = ByteBuffer()
    out.append("{\"benchmark\":", quoted: command)
    out.append(",\"group\":", quoted: lastTitle)
    out.append(",\"case\":", quoted: name)
    for metric in metrics {
      out.append(",", quoted: metric.name)
      out.append(":")
      out.append(string: metric.value.isFinite ? "\(metric.value)" : "null")
    }
    if let noise { out.append(string: ",\"noise\":\(Figures.text(noise, decimals: 4))") }
    out.append("}\n")
    return String(decoding: out.bytes, as: UTF8.self)
  }

  private func print(_ text: String) throws { try StandardStreams.writeAll(text, to: StandardStreams.output) }
}

/// One number of a measurement.
struct Metric {
  /// Its name as a member of the JSON output.
  let name: String
  let value: Double
  /// The unit in the table.
  let unit: String

  static func nanoseconds(_ value: Double) -> Metric { Metric(name: "nanoseconds", value: value, unit: "ns") }
  static func microseconds(_ name: String, _ value: Double) -> Metric {
    Metric(name: name, value: value, unit: "µs \(name)")
  }
  static func gigabytesPerSecond(_ value: Double) -> Metric {
    Metric(name: "gigabytesPerSecond", value: value, unit: "GB/s")
  }
  static func millionsPerSecond(_ name: String, _ value: Double) -> Metric {
    Metric(name: name, value: value, unit: "M \(name)/s")
  }
  static func bytes(_ value: Double, each item: String) -> Metric {
    Metric(name: "bytes", value: value, unit: "bytes a \(item)")
  }
  static func ratio(_ value: Double, to base: String) -> Metric {
    Metric(name: "ratio", value: value, unit: "× \(base)")
  }
}

/// Formats numbers for people.
enum Figures {
  /// Returns at least three significant digits, without an exponent.
  static func text(_ value: Double) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "-" }
    let decimals = value.magnitude >= 100 ? 0 : value.magnitude >= 10 ? 1 : value.magnitude >= 1 ? 2 : 3
    return text(value, decimals: decimals)
  }

  static func text(_ value: Double, decimals: Int) -> String {
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((value.magnitude * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    if decimals == 0 { return "\(sign)\(grouped(scaled))" }
    return "\(sign)\(scaled / scale).\(padded(scaled % scale, to: decimals))"
  }

  static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}

/// The times of several runs of one case, in nanoseconds.
struct Sample {
  private let times: [Double]

  init(_ times: [Double]) { self.times = times.sorted() }

  var best: Double { times.first ?? 0 }
  var median: Double { times.isEmpty ? 0 : times[times.count / 2] }
  /// The relative distance of the median from the best, a measure of the noise of the machine.
  var noise: Double { best > 0 ? median / best - 1 : 0 }

  /// Measures `runs` runs of `body` in processor time, after one run to warm up.
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
