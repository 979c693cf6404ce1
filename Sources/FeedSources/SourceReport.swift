import FeedModel

/// What came of looking at a database.
public struct SourceReport: Sendable {
  public enum Outcome: Sendable {
    /// The database is as it was when its rows were read last.
    case unchanged
    /// All rows of the query.
    case rows(ManagedRows)
    /// A sentence on what is wrong and what to do.
    case failed(String)
  }

  /// The feed's name.
  public let name: String
  /// Which of the feed's specifications it is about; older ones are of no interest any more.
  let generation: Int
  public let outcome: Outcome
  /// How long it took, in nanoseconds.
  let duration: UInt64
}
