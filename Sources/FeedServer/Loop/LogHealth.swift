/// Whether the commit log stores batches, and the reports when this changes.
///
/// Only the first of consecutive failures and the first success after them are reported.
struct LogHealth {
  /// A line for the daemon's log and one for the service manager.
  struct Report: Equatable {
    var line: String
    var status: String
  }

  private(set) var failedBatches = 0

  /// Records that a batch was not stored.
  /// - Returns: the report of the first failure; nil for the following ones.
  mutating func didFail(_ reason: String) -> Report? {
    failedBatches += 1
    guard failedBatches == 1 else { return nil }
    return Report(line: "\(reason); changes are refused until storing works again", status: "cannot store: \(reason)")
  }

  /// Records that a batch was stored. O(1), without allocation if there was no failure.
  /// - Returns: the report of the recovery; nil if there was no failure.
  mutating func didStore() -> Report? {
    if failedBatches == 0 { return nil }
    defer { failedBatches = 0 }
    return Report(
      line: "storing works again; \(failedBatches) \(failedBatches == 1 ? "batch was" : "batches were") refused",
      status: "listening; storing works again")
  }
}
