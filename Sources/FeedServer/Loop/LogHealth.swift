/// Whether the commit log stores what it is given, and what to report when that changes.
///
/// Only the first failure of a row of failures and the first success after it are reported.
struct LogHealth {
  /// A line for the daemon's log and one for the service manager.
  struct Report: Equatable {
    var line: String
    var status: String
  }

  private(set) var failedBatches = 0

  /// Notes that a batch was not stored.
  /// - Returns: the report of the first failure; nil for the following ones.
  mutating func didFail(_ reason: String) -> Report? {
    failedBatches += 1
    guard failedBatches == 1 else { return nil }
    return Report(line: "\(reason); changes are refused until storing works again", status: "cannot store: \(reason)")
  }

  /// Notes that a batch was stored. O(1), without allocation while all is well.
  /// - Returns: the report of the recovery; nil when the batch before was stored, too.
  mutating func didStore() -> Report? {
    if failedBatches == 0 { return nil }
    defer { failedBatches = 0 }
    return Report(
      line: "storing works again; \(failedBatches) \(failedBatches == 1 ? "batch was" : "batches were") refused",
      status: "listening; storing works again")
  }
}
