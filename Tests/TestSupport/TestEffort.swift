import FeedSystem

/// How much work the randomized tests do.
///
/// `scripts/test --long` sets `FEEDD_LONG=1`. A long version repeats the same checks more often; it never checks less.
public enum TestEffort {
  /// Whether the long versions run.
  public static let isLong = Environment.current["FEEDD_LONG"] == "1"

  /// Returns the number of repetitions.
  /// - Parameters:
  ///   - standard: the number without `--long`.
  ///   - long: the number with `--long`.
  ///   - variable: an environment variable that overrides both, to replay or extend one test.
  public static func count(_ standard: Int, long: Int, variable: String? = nil) -> Int {
    if let variable, let count = Environment.current[variable].flatMap({ Int($0) }) { return count }
    return isLong ? long : standard
  }
}
