import FeedJSON
import FeedSystem

/// Prints measurements as they are made: a line of a table each, or a JSON object each.
struct Report {
  static let defaultRuns = 5

  let command: String
  /// How many times each case is run.
  let runs: Int
  let asJSON: Bool
  private var lastTitle = ""

  init(command: String, runs: Int, asJSON: Bool) {
    self.command = command
    self.runs = runs
    self.asJSON = asJSON
  }

  /// Begins a group of cases.
  mutating func title(_ title: String) throws {
    lastTitle = title
    if !asJSON { try print("\(title)\n") }
  }

  /// Prints what one case took.
  /// - Parameter noise: see ``Sample/noise``; nil where it means nothing.
  func add(_ name: String, _ metrics: [Metric], noise: Double? = nil) throws {
    try print(asJSON ? json(name, metrics, noise) : line(name, metrics, noise))
  }

  /// Prints what `count` operations took, each of which went through so many bytes.
  func add(_ name: String, _ sample: Sample, count: Int, bytes: Int = 0) throws {
    let each = sample.best / Double(count)
    var metrics = [Metric.nanoseconds(each)]
    if bytes > 0 { metrics.append(.gigabytesPerSecond(Double(bytes) / each)) }
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
    out.append("{\"benchmark\":")
    out.appendJSONString(command)
    out.append(",\"group\":")
    out.appendJSONString(lastTitle)
    out.append(",\"case\":")
    out.appendJSONString(name)
    for metric in metrics {
      out.append(",")
      out.appendJSONString(metric.name)
      out.append(":")
      out.append(string: metric.value.isFinite ? "\(metric.value)" : "null")
    }
    if let noise { out.append(string: ",\"noise\":\(Figures.text(noise, decimals: 4))") }
    out.append("}\n")
    return String(decoding: out.bytes, as: UTF8.self)
  }

  private func print(_ text: String) throws {
    try StandardStreams.writeAll(text, to: StandardStreams.output)
  }
}
