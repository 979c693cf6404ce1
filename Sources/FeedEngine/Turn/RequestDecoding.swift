import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// From a scanned message to a request, and whether the log must store it.
extension Engine {
  /// Decodes a message to a request.
  /// - Parameter id: set as soon as a valid id is found, so that an error response can have it.
  func decode(_ message: JSONView, id: inout JSONView?) throws(FeedError) -> (Method, Request) {
    let request = try Request(reading: message, id: &id)
    if let text = id?.text, text.count > longestID {
      id = nil
      throw .invalidRequest(reason: "\"id\" has \(grouped(text.count)) bytes and may have \(grouped(longestID))")
    }
    guard let method = Method(request.method) else { throw .methodNotFound(request.method.truncatedName ?? "") }
    return (method, request)
  }

  /// Whether a request must be stored before it is executed.
  func isLogged(_ method: Method, _ request: Request, of session: Session) -> Bool {
    if method.isLogged { return true }
    // The first watch begins the feed's history. Recovery must know this to keep the history too. Earlier waiting
    // requests may still affect the feed.
    return method.rules.effect == .mayBeginHistory && (!session.line.isEmpty || mayBeginHistory(request))
  }

  /// Whether a `watch` may be the first watch of its feed, which begins the feed's history, or comes from a member of the group
  /// that is ahead of this one.
  private func mayBeginHistory(_ request: Request) -> Bool {
    // A text that is no name is not decoded, and not stored: no request before this one can have defined such a feed.
    guard let name = request.params?.member("feed")?.string(atMost: FeedName.maxReferenceLength),
      FeedName.isValidReference(name)
    else { return false }
    guard let feed = try? catalog.feed(named: name) else { return true }
    return !feed.hasHistory || isAhead(Parameters(object: request.params))
  }

  /// Whether a `watch` resumes from a revision that this member of a group has not reached. The log of the group executes it behind
  /// all that its client can have seen on other hosts.
  func isAhead(_ parameters: Parameters) -> Bool {
    guard status.sharedLog != nil, let since = parameters.member("since"), since.kind == .object,
      let revision = since.member("revision")?.int, let epoch = since.member("epoch"),
      epoch.text.count == identity.epoch.utf8.count + 2, epoch.string == identity.epoch
    else { return false }
    return revision > catalog.revision
  }

  /// The error for a payload that is not valid JSON.
  func refusal(of error: JSONError) -> FeedError {
    if error.kind == .tooDeep {
      return limits.exceeded(\.maxDepth, "the frame nests deeper at byte \(error.offset); nest less")
    }
    return .parseError(offset: error.offset, reason: error.message)
  }
}

extension FeedError {
  /// Whether an error is answered: always, unless the message is a valid notification.
  func isAnswered(with id: JSONView?, message: JSONView) -> Bool {
    if id != nil { return true }
    switch self {
    case .invalidRequest: return true
    default: return message.member("id") != nil
    }
  }
}
