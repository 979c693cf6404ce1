/// One number of a measurement.
struct Metric {
  /// Its name as a member of the JSON output.
  let name: String
  let value: Double
  /// What follows it in the table.
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
  static func ratio(_ value: Double, to base: String) -> Metric {
    Metric(name: "ratio", value: value, unit: "× \(base)")
  }
}
