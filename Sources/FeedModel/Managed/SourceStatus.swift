/// How it stands with what a managed feed is read from.
public struct SourceStatus: Equatable, Sendable {
  public enum State: String, Sendable {
    /// It has not been read yet.
    case starting
    /// The rows are those of the database.
    case ok
    /// It cannot be read: the rows are the last good ones.
    case error
  }

  public let state: State
  /// What is wrong and what to do; empty unless `state` is `error`.
  public let message: String
  /// Since when it has been so: RFC 3339, in UTC. Empty before the source was first looked at.
  public let since: String

  public init(_ state: State, message: String = "", since: String = "") {
    self.state = state
    self.message = message
    self.since = since
  }

  /// Whether `other` says the same, whenever it began.
  public func saysTheSame(as other: SourceStatus) -> Bool {
    state == other.state && message == other.message
  }
}
