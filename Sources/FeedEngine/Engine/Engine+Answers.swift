import FeedJSON
import FeedModel
import FeedWire

/// Writing answers.
extension Engine {
  /// Writes the result of a request, unless it was a notification. `body` appends the members of the result.
  ///
  /// - Throws: `limitExceeded` when the answer would not fit a frame; nothing is written then.
  func reply(
    _ request: Request, of session: Session, _ body: (inout ByteBuffer) -> Void
  ) throws(FeedError) {
    guard let id = request.id, !isReplaying else { return }
    let buffer = batch ?? answers
    let start = openAnswer(buffer)
    buffer.bytes.beginResult(id: id)
    body(&buffer.bytes)
    buffer.bytes.endMessage()
    try closeAnswer(buffer, start, session)
  }

  /// Writes the result of a job's request.
  func reply(_ ticket: JobTicket, of session: Session, _ job: any Job) throws(FeedError) {
    guard let id = ticket.id else { return }
    let buffer = batch ?? answers
    let start = openAnswer(buffer)
    buffer.bytes.append("{\"jsonrpc\":\"2.0\",\"id\":")
    id.withUnsafeBytes { buffer.bytes.append($0) }
    buffer.bytes.append(",\"result\":{")
    job.appendResult(to: &buffer.bytes)
    buffer.bytes.endMessage()
    try closeAnswer(buffer, start, session)
  }

  /// Writes an error response; `id` nil becomes null.
  func answer(_ session: Session, error: FeedError, id: JSONView?) {
    if isReplaying { return }
    counters.errors &+= 1
    let buffer = batch ?? answers
    let start = openAnswer(buffer)
    buffer.bytes.appendError(error, id: id)
    do { try closeAnswer(buffer, start, session) } catch { return }
  }

  /// Writes an error response to a job's request, unless it was a notification.
  func answer(_ session: Session, error: FeedError, ticket: JobTicket) {
    guard let id = ticket.id else { return }
    id.withUnsafeBytes { text in
      let view = try? scanner.scan(text)
      answer(session, error: error, id: view)
    }
  }

  /// Begins a frame, or, in a batch, an entry of its array.
  private func openAnswer(_ buffer: TurnBuffer) -> Int {
    let start = buffer.bytes.count
    if batch == nil {
      _ = buffer.bytes.beginFrame()
    } else if start > 0 {
      buffer.bytes.append(UInt8(ascii: ","))
    }
    return start
  }

  private func closeAnswer(_ buffer: TurnBuffer, _ start: Int, _ session: Session) throws(FeedError) {
    if buffer.bytes.count &- start > limits.maxFrame || batch != nil && buffer.bytes.count > limits.maxFrame - 2 {
      buffer.bytes.truncate(to: start)
      throw .limitExceeded(
        limit: "maxFrame", value: limits.maxFrame,
        reason: "the answer does not fit a frame; ask for less at a time, or watch the feed instead")
    }
    if batch == nil {
      buffer.bytes.endFrame(at: start)
      queue(session, buffer, from: start)
    }
  }
}
