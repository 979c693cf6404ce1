import FeedChange
import FeedClient
import FeedJSON
import FeedQuery
import FeedSystem

/// Finds out how the elements of a feed are identified.
struct FeedIdentity {
  /// The maximum number of views above one another that are followed.
  private static let maxSteps = 16
  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  /// The path of the identity in the definition of the feed, or of the feed that a view shows; `$.id` for other feeds, and
  /// if the daemon does not tell.
  func path(of feed: String) -> SingularPath {
    if feed == FeedName.feeds { return (try? SingularPath(parsing: "$.feed")) ?? .id }
    let deadline = MonotonicClock.now &+ 5_000_000_000
    guard let connection = try? Connection.open(path: invocation.socketPath, timeout: .seconds(1)),
      (try? connection.hello(client: "feedclient/\(invocation.command.name)", deadline: deadline)) != nil
    else { return .id }
    var name = feed
    for _ in 0..<Self.maxSteps {
      var params = ParameterWriter()
      params.add("feed", name)
      let text = params.finish()
      let found = try? connection.call("describe", params: { $0.append(string: text) }, deadline: deadline) {
        (path: $0.member("id")?.string, source: $0.member("of")?.string)
      }
      if let path = found?.path { return (try? SingularPath(parsing: path)) ?? .id }
      // A bin has no definition of its own.
      let collection = name.firstIndex(of: "/").map { String(name[..<$0]) }
      guard let next = found?.source ?? collection else { break }
      name = next
    }
    return .id
  }
}
