/// What a request can be refused for. Each case carries what a person needs to see what to change; the codes and
/// sentences on the wire are made from it in one place, by FeedWire.
///
/// An error changes nothing: whoever throws one leaves the state as it was.
public enum FeedError: Error, Equatable, Sendable {
  case unknownFeed(String)
  /// The definition contradicts what is defined already.
  case definitionConflict(feed: String, reason: String)
  case wrongKind(feed: String, kind: String, wanted: String)
  /// The element number `index` of the request has no identity at `path`; an empty path: it is an identity itself.
  case noIdentity(feed: String, index: Int, path: String, found: String)
  /// `member` holds a filter or path that does not parse at `offset`, in bytes of `text`.
  case badQuery(member: String, text: String, offset: Int, reason: String)
  case indexOutOfRange(feed: String, index: Int, count: Int, what: String)
  case permissionDenied(reason: String)
  /// A limit by its name, with its value and what to do.
  case limitExceeded(limit: String, value: Int, reason: String)
  case storageFailed(reason: String)
  case parseError(offset: Int, reason: String)
  case invalidRequest(reason: String)
  case methodNotFound(String)
  case invalidParams(member: String, reason: String)
  case internalError(reason: String)
  /// The operation number `index` of a transaction was refused, so none was applied.
  indirect case operationFailed(index: Int, FeedError)
  /// An error that does not name its feed itself, of a request that did.
  indirect case ofFeed(String, FeedError)
}

extension FeedError {
  /// The error with the feed that its request named, unless it names one already.
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
