import FeedJSON

/// A `bye` notification: the daemon's last word before it closes the connection.
public struct Bye: Equatable, Sendable {
  /// A short name for programs.
  public var reason: String
  /// A sentence for people.
  public var message: String

  public init(reason: String, message: String) {
    self.reason = reason
    self.message = message
  }

  /// Reads the `params` of the notification; what is missing is empty, since there is nothing left to complain to.
  public init(_ params: JSONView) {
    reason = params.member("reason")?.string ?? ""
    message = params.member("message")?.string ?? ""
  }
}
