import FeedChange
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
    if let batch = session.batch {
      try reply(id, of: session, in: batch.answers, body)
    } else {
      try reply(id, of: session, in: answers, body)
    }
  }

  private func reply(
    _ id: JSONView, of session: Session, in buffer: TurnBuffer, _ body: (inout ByteBuffer) -> Void
  ) throws(FeedError) {
    let start = openAnswer(buffer, session)
    buffer.bytes.beginResult(id: id)
    body(&buffer.bytes)
    buffer.bytes.endMessage()
    try closeAnswer(buffer, start, session)
  }

  /// Writes the result of a job's request.
  func reply(_ ticket: JobTicket, of session: Session, _ job: any Job) throws(FeedError) {
    guard let id = ticket.id else { return }
    let buffer = session.batch?.answers ?? answers
    let start = openAnswer(buffer, session)
    id.withUnsafeBytes { buffer.bytes.beginResult(id: $0) }
    job.appendResult(to: &buffer.bytes)
    buffer.bytes.endMessage()
    try closeAnswer(buffer, start, session)
  }

  /// Writes an error response; `id` nil becomes null.
  func answer(_ session: Session, error: FeedError, id: JSONView?) {
    answer(session, error: error, id: id?.text)
  }

  /// Writes an error response to a job's request, unless it was a notification.
  func answer(_ session: Session, error: FeedError, ticket: JobTicket) {
    ticket.id?.withUnsafeBytes { answer(session, error: error.naming(ticket.feed), id: $0) }
  }

  private func answer(_ session: Session, error failure: FeedError, id: UnsafeRawBufferPointer?) {
    if isReplaying { return }
    counters.errors &+= 1
    let buffer = session.batch?.answers ?? answers
    var start = openAnswer(buffer, session)
    buffer.bytes.appendError(failure, id: id)
    do {
      try closeAnswer(buffer, start, session)
    } catch {
      start = openAnswer(buffer, session)
      buffer.bytes.appendShortError(failure, id: id)
      do { try closeAnswer(buffer, start, session) } catch { return }
    }
  }

  /// Begins a frame, or, in a batch, an entry of its array.
  private func openAnswer(_ buffer: TurnBuffer, _ session: Session) -> Int {
    let start = buffer.bytes.count
    if session.batch == nil {
      _ = buffer.bytes.beginFrame()
    } else if start > 0 {
      buffer.bytes.append(UInt8(ascii: ","))
    }
    return start
  }

  private func closeAnswer(_ buffer: TurnBuffer, _ start: Int, _ session: Session) throws(FeedError) {
    if let batch = session.batch { return try closeEntry(of: batch, start, session) }
    if buffer.bytes.endFrame(at: start) > limits.maxFrame {
      buffer.bytes.truncate(to: start)
      throw answerTooLarge
    }
    queue(session, buffer, from: start)
  }

  /// Ends an entry of a batch's array; the array goes out without it when it would exceed a frame.
  private func closeEntry(of batch: Batch, _ start: Int, _ session: Session) throws(FeedError) {
    if batch.answers.bytes.count + 2 <= limits.maxFrame { return }
    let entry = Array(batch.answers.bytes.bytes[(start > 0 ? start + 1 : 0)...])
    batch.answers.bytes.truncate(to: start)
    if entry.count + 2 > limits.maxFrame { throw answerTooLarge }
    sendAnswers(of: batch, to: session)
    entry.withUnsafeBytes { batch.answers.bytes.append($0) }
  }

  /// Bytes of an id beyond which a request is refused: there must be room for the answer besides.
  var longestID: Int { limits.maxFrame / 4 }

  /// Bytes that the members of a result may have behind `revision`.
  func room(for request: Request) -> Int {
    limits.maxFrame - Self.answerOverhead - (request.id?.text.count ?? 0)
  }

  /// Bytes of an answer besides its id and its result, brackets, names and a revision included: more than it ever has.
  private static let answerOverhead = 192

  private var answerTooLarge: FeedError {
    .limitExceeded(
      limit: "maxFrame", value: limits.maxFrame,
      reason: "the answer does not fit a frame; ask for less at a time, or watch the feed instead")
  }
}
