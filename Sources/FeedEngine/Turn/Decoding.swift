import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// From a scanned message to a request, and from a request to its answer.
extension Engine {
  /// Reads a message as a request.
  ///
  /// - Parameter id: set as soon as a usable one is seen, so that an error can be answered to it.
  func decode(_ message: JSONView, id: inout JSONView?) throws(FeedError) -> (Method, Request) {
    let request = try Request(reading: message, id: &id)
    if let text = id?.text, text.count > longestID {
      id = nil
      throw .invalidRequest(reason: "\"id\" has \(text.count) bytes and may have \(longestID)")
    }
    guard let method = Method(request.method) else {
      throw .methodNotFound(request.method.string ?? "")
    }
    return (method, request)
  }

  /// Whether a `watch` may be the first of its feed, which keeps its changes from then on.
  func mayBeginHistory(_ request: Request) -> Bool {
    guard let name = request.params?.member("feed")?.string else { return false }
    guard let feed = try? catalog.feed(named: name) else { return true }
    return feed.history == nil
  }

  /// What a client is told of a payload that does not scan.
  func refusal(of error: JSONError) -> FeedError {
    if error.kind == .tooDeep {
      return .limitExceeded(
        limit: "maxDepth", value: limits.maxDepth,
        reason: "the frame nests deeper at byte \(error.offset); nest less, or start feedd with a larger --max-depth")
    }
    return .parseError(offset: error.offset, reason: error.message)
  }

  /// Executes a request that waited, and answers it with an error if it fails.
  ///
  /// - Parameter checksAccess: false for what was stored, which was judged when it was taken.
  func perform(
    _ method: Method, _ id: JSONView?, _ parameters: Parameters, of session: Session, checksAccess: Bool
  ) {
    do throws(FeedError) {
      if checksAccess && access.isRestricted { try checkAccess(method, parameters.object, by: session.peer) }
      try execute(method, parameters, makeReply(to: session, id: id?.text))
    } catch {
      // A sound notification is never answered.
      guard let id else { return }
      refuse(makeReply(to: session, id: id.text), error.naming(parameters.member("feed")?.truncatedName))
    }
  }

  /// Replays a stored request. Nobody receives its answer. Its result is that of its first execution, errors included.
  func performSilently(_ method: Method, _ id: JSONView?, _ parameters: Parameters) {
    let reply = Reply(to: sessions.nobody, id: id?.text, maxFrame: limits.maxFrame, isDiscarded: true)
    do throws(FeedError) { try execute(method, parameters, reply) } catch {}
  }

  /// Answers with an error and closes the connection: its stream cannot be read any further.
  func endStream(of session: Session, reason: String) {
    refuse(makeReply(to: session, id: nil), .invalidRequest(reason: reason))
    close(session, reason: "badFrame", message: "The stream cannot be read on: \(reason).", level: .warning)
  }
}

extension FeedError {
  /// Whether an error is told to the client: always, unless the message was a sound notification, which is never answered.
  func isAnswered(with id: JSONView?, message: JSONView) -> Bool {
    if id != nil { return true }
    switch self {
    case .invalidRequest: return true
    default: return message.member("id") != nil
    }
  }
}
