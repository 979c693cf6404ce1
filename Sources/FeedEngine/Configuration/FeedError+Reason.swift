import FeedChange
import FeedModel

extension FeedError {
  /// What is wrong, as a part of a sentence.
  var reason: String {
    switch self {
    case .definitionConflict(_, let reason), .permissionDenied(let reason), .internalError(let reason),
      .storageFailed(let reason):
      reason
    case .unknownFeed(let name): "shows \"\(name)\", which is defined neither here nor in the daemon"
    case .limitExceeded(let limit, let value, let reason): "limit \(limit) (\(value)) is exceeded: \(reason)"
    case .invalidParams(let member, let reason): "\(member) \(reason)"
    case .noIdentity(_, let index, let path, let found):
      "row \(index) has no identity: \(path) must be a string or a number, and there is \(found)"
    default: "\(self)"
    }
  }
}
