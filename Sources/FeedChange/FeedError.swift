/// The reason why a request was refused.
///
/// Each case carries what its message needs. FeedWire maps the cases to the codes and messages of the protocol. A function
/// that throws one has changed nothing.
public enum FeedError: Error, Equatable, Sendable {
  case unknownFeed(String)
  /// The definition contradicts the existing one.
  case definitionConflict(feed: String, reason: String)
  case wrongKind(feed: String, kind: String, wanted: String)
  /// Element `index` of the request has no identity at `path`. If `path` is empty, the element itself must be an identity.
  case noIdentity(feed: String, index: Int, path: String, found: String)
  /// The filter or path in `member` does not parse. `offset` is in bytes of `text`.
  case badQuery(member: String, text: String, offset: Int, reason: String)
  case indexOutOfRange(feed: String, index: Int, count: Int, what: String)
  case permissionDenied(reason: String)
  /// The limit with that name and value was exceeded. `reason` says what to do.
  case limitExceeded(limit: String, value: Int, reason: String)
  case storageFailed(reason: String)
  case parseError(offset: Int, reason: String)
  case invalidRequest(reason: String)
  case methodNotFound(String)
  case invalidParams(member: String, reason: String)
  case internalError(reason: String)
  /// Operation `index` of a transaction was refused, so none was applied.
  indirect case operationFailed(index: Int, FeedError)
  /// An error of a request that names a feed, without a feed of its own.
  indirect case ofFeed(String, FeedError)
}

extension FeedError {
  /// Returns the error with the feed that its request named, unless it already names one.
  public func naming(_ feed: String?) -> FeedError {
    guard let feed else { return self }
    switch self {
    case .badQuery, .invalidParams, .limitExceeded, .permissionDenied, .storageFailed, .internalError:
      return .ofFeed(feed, self)
    default:
      return self
    }
  }
}
