import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// From bytes to frames to requests.
extension Engine {
  /// Whether what a connection has sent and may still send is of no use any more: who keeps some of it may give it up.
  public func ignoresInput(_ id: ConnectionID) -> Bool {
    session(id).map { $0.isClosing || $0.inputEnded } ?? true
  }

  /// Whether a connection can take input now. While false, do not read from it: its answers are not being read, or one
  /// is still being worked out.
  public func wantsInput(_ id: ConnectionID) -> Bool {
    guard let session = session(id) else { return false }
    return !session.isClosing && !session.inputEnded && canWork(session)
  }

  func canWork(_ session: Session) -> Bool {
    session.work == nil && session.batch == nil && session.output.count <= limits.maxQueue
  }

  /// The length, header included, of the frame that begins `bytes`, once it is known; 0 before.
  public func bytesNeeded(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Int {
    if case .incomplete(let total?) = Frame.first(in: bytes, maxFrame: limits.maxFrame) { return total }
    return 0
  }

  /// Executes the whole frames at the beginning of `bytes` and returns how many bytes they were. The caller keeps the
  /// rest and offers it again with more behind it.
  public func receive(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, now: Instant) -> Int {
    self.now = turnTime ?? now
    executePrepared()
    guard let session = session(id) else { return bytes.count }
    let consumed = execute(bytes, of: session)
    session.heldInput = session.isClosing ? 0 : bytes.count &- consumed
    recount(session)
    return consumed
  }

  private func execute(_ bytes: UnsafeRawBufferPointer, of session: Session) -> Int {
    let end = isDurable ? session.preparedBytes : bytes.count
    var consumed = 0
    while consumed < bytes.count {
      if session.isClosing { return bytes.count }
      // What was prepared is executed whatever its answers' size: its place in the journal is fixed.
      let isDue = isDurable && consumed < end && session.work == nil && session.batch == nil
      guard isDue || canWork(session) else {
        session.isPaused = true
        break
      }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
      switch Frame.first(in: rest, maxFrame: limits.maxFrame) {
      case .incomplete:
        note(session, partial: rest.count)
        counters.bytesIn &+= UInt64(consumed)
        return consumed
      case .badLength(let length):
        refuse(session, length: length)
        return bytes.count
      case .complete where consumed >= end:
        // Not prepared: it is offered again in the next turn.
        resumed.append(session.id)
        counters.bytesIn &+= UInt64(consumed)
        return consumed
      case .complete(let payload):
        consumed &+= Frame.headerLength &+ payload.count
        session.hasPreparedMore = isDurable && consumed < end
        handle(payload, of: session)
      }
    }
    session.hasPreparedMore = false
    session.partialSince = nil
    counters.bytesIn &+= UInt64(consumed)
    return consumed
  }

  /// Remembers since when a half frame makes no progress.
  private func note(_ session: Session, partial bytes: Int) {
    if session.partialSince == nil || session.partialBytes != bytes {
      session.partialSince = now
      session.partialBytes = bytes
    }
  }

  private func refuse(_ session: Session, length: Int) {
    let reason = "a frame's length is \(length) and must be 1 to \(limits.maxFrame)"
    refuse(makeReply(to: session, id: nil), .invalidRequest(reason: reason))
    close(session, reason: "badFrame", message: "The stream cannot be read on: \(reason).", level: .warning)
  }

  func handle(_ payload: UnsafeRawBufferPointer, of session: Session) {
    let message: JSONView
    do {
      message = try scanner.scan(payload)
    } catch {
      counters.requests &+= 1
      return refuse(makeReply(to: session, id: nil), refusal(of: error))
    }
    if message.kind == .array {
      handleBatch(message, of: session)
    } else {
      handleRequest(message, of: session)
    }
  }

  /// What a client is told of a payload that does not scan.
  private func refusal(of error: JSONError) -> FeedError {
    if error.kind == .tooDeep {
      return .limitExceeded(
        limit: "maxDepth", value: limits.maxDepth,
        reason: "the frame nests deeper at byte \(error.offset); nest less, or start feedd with a larger --max-depth")
    }
    return .parseError(offset: error.offset, reason: error.message)
  }

  /// Executes one request and answers it, if it wants an answer.
  func handleRequest(_ message: JSONView, of session: Session) {
    counters.requests &+= 1
    session.requests &+= 1
    var id: JSONView?
    do throws(FeedError) {
      let request = try Request(reading: message, id: &id)
      if let text = id?.text, text.count > longestID {
        id = nil
        throw .invalidRequest(reason: "\"id\" has \(text.count) bytes and may have \(longestID)")
      }
      guard let method = Method(request.method) else {
        throw .methodNotFound(request.method.string ?? "")
      }
      if method.rules.cost == .long && session.hasPreparedMore {
        throw .invalidRequest(reason: "\"method\" stands twice in it; name one method")
      }
      if access.isRestricted { try access.check(method, request.params, by: session.peer) }
      try execute(method, Parameters(object: request.params), makeReply(to: session, id: id?.text))
    } catch {
      guard error.isAnswered(with: id, message: message) else { return }
      refuse(
        makeReply(to: session, id: id?.text), error.naming(message.member("params")?.member("feed")?.nameOrItsBeginning)
      )
    }
  }
}

extension FeedError {
  /// Whether an error is told to the client: always, unless the message was a sound notification, which never is answered.
  fileprivate func isAnswered(with id: JSONView?, message: JSONView) -> Bool {
    if id != nil { return true }
    switch self {
    case .invalidRequest: return true
    default: return message.member("id") != nil
    }
  }
}
