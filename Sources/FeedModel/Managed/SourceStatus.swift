/// The status of the database of a managed feed.
public struct SourceStatus: Equatable, Sendable {
  public enum State: String, Sendable {
    /// It has not been read yet.
    case starting
    /// The rows are those of the database.
    case ok
    /// The database cannot be read. The rows are those of the last successful read.
    case error
  }

  public let state: State
  /// The cause and the next step; empty unless `state` is `error`.
  public let message: String
  /// The time of the last change of status: RFC 3339, in UTC. Empty before the first read.
  public let since: String

  public init(_ state: State, message: String = "", since: String = "") {
    self.state = state
    self.message = message
    self.since = since
  }

  /// Whether `other` has the same state and message, regardless of its time.
  public func saysTheSame(as other: SourceStatus) -> Bool {
    state == other.state && message == other.message
  }
}
