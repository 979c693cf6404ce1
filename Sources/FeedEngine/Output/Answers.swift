import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The destination of the answer to one request, and the space for it.
///
/// An answer becomes a frame of its own or, while its connection executes a JSON-RPC batch, an entry of the batch's
/// array. Answers to replayed requests are discarded. A reply is valid as long as the bytes of its id.
struct Reply {
  let session: Session
  /// The request's id as JSON text; nil for a notification, which is only answered if it is invalid.
  let id: UnsafeRawBufferPointer?
  /// Whether answers and errors are discarded.
  let isDiscarded: Bool
  private let maxFrame: Int

  init(to session: Session, id: UnsafeRawBufferPointer?, maxFrame: Int, isDiscarded: Bool) {
    self.session = session
    self.id = id
    self.isDiscarded = isDiscarded
    self.maxFrame = maxFrame
  }

  /// The maximum bytes of the result's members, except the revision.
  var room: Int { maxFrame - Self.overhead - (id?.count ?? 0) }

  /// The bytes of an answer besides its id and the members of its result: brackets, names and a revision, rounded up.
  private static let overhead = 192
}

extension Engine {
  /// The maximum bytes of an id. A request with a longer id is refused, because the answer must fit beside it.
  var longestID: Int { limits.maxFrame / 4 }

  /// Returns the reply to a request of `session` with this id, as JSON text.
  @inline(__always) func makeReply(to session: Session, id: UnsafeRawBufferPointer?) -> Reply {
    Reply(to: session, id: id, maxFrame: limits.maxFrame, isDiscarded: false)
  }

  /// Writes the result of a request, unless it is a notification. `body` appends the members of the result.
  /// - Throws: `limitExceeded` if the answer does not fit in a frame; nothing is written then.
  @inline(__always) func answer(_ reply: Reply, _ body: (inout ByteBuffer) -> Void) throws(FeedError) {
    guard let id = reply.id, !reply.isDiscarded else { return }
    // Two calls: to choose the buffer first would count a reference.
    if let array = reply.session.line.array {
      try write(to: array.answers, reply.session, id: id, body)
    } else {
      try write(to: answers, reply.session, id: id, body)
    }
  }

  @inline(__always) private func write(
    to buffer: TurnBuffer, _ session: Session, id: UnsafeRawBufferPointer, _ body: (inout ByteBuffer) -> Void
  ) throws(FeedError) {
    let start = openAnswer(buffer, session)
    buffer.bytes.beginResult(id: id)
    body(&buffer.bytes)
    buffer.bytes.endMessage()
    try closeAnswer(buffer, start, session)
  }

  /// Writes an error response. Without an id, the response has `id` null.
  func refuse(_ reply: Reply, _ failure: FeedError) {
    if reply.isDiscarded { return }
    status.counters.errors &+= 1
    let buffer = reply.session.line.array?.answers ?? answers
    var start = openAnswer(buffer, reply.session)
    buffer.bytes.appendError(failure, id: reply.id)
    do {
      try closeAnswer(buffer, start, reply.session)
    } catch {
      start = openAnswer(buffer, reply.session)
      buffer.bytes.appendShortError(failure, id: reply.id)
      do { try closeAnswer(buffer, start, reply.session) } catch { return }
    }
  }

  /// Writes the result of a request that was answered in parts.
  func answer(_ session: Session, _ ticket: JobTicket, _ body: (inout ByteBuffer) -> Void) throws(FeedError) {
    guard let id = ticket.id else { return }
    var failure: FeedError?
    id.withUnsafeBytes { id in
      do throws(FeedError) { try answer(makeReply(to: session, id: id), body) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Writes the error response of a request that was answered in parts, unless it was a notification.
  func refuse(_ session: Session, _ ticket: JobTicket, _ error: FeedError) {
    ticket.id?.withUnsafeBytes { refuse(makeReply(to: session, id: $0), error.naming(ticket.feed)) }
  }

  /// Begins a frame, or an entry of a JSON-RPC batch.
  private func openAnswer(_ buffer: TurnBuffer, _ session: Session) -> Int {
    if let array = session.line.array { return array.openEntry() }
    let start = buffer.bytes.count
    _ = buffer.bytes.beginFrame()
    return start
  }

  private func closeAnswer(_ buffer: TurnBuffer, _ start: Int, _ session: Session) throws(FeedError) {
    // The connection was closed while its request was under way.
    if session.isClosing { return buffer.bytes.truncate(to: start) }
    if let array = session.line.array { return try closeEntry(of: array, start, session) }
    if buffer.bytes.endFrame(at: start) > limits.maxFrame {
      buffer.bytes.truncate(to: start)
      throw .answerTooLarge(maxFrame: limits.maxFrame)
    }
    queue(session, buffer, from: start)
  }

  /// Ends an entry of a batch. If the array would exceed a frame, it is sent without the entry, which starts the next
  /// array.
  private func closeEntry(of array: RequestArray, _ start: Int, _ session: Session) throws(FeedError) {
    if array.answersSize <= limits.maxFrame { return }
    let entry = array.takeEntry(from: start)
    if entry.count + 2 > limits.maxFrame { throw .answerTooLarge(maxFrame: limits.maxFrame) }
    sendAnswers(of: array, to: session)
    _ = array.openEntry()
    entry.withUnsafeBytes { array.answers.bytes.append($0) }
  }
}

extension FeedError {
  /// An answer that does not fit in a frame.
  static func answerTooLarge(maxFrame: Int) -> FeedError {
    Limits.exceeded(
      \.maxFrame, of: maxFrame, "the answer does not fit a frame; ask for less at a time, watch the feed instead")
  }
}

/// Writes rows of one section, or of one part of a snapshot, as the members `elements` and, if rows may have types, `types`.
struct RowsWriter: ~Copyable {
  let withTypes: Bool
  /// The types of the rows between `begin` and `end`, separated by commas.
  private var types = ByteBuffer()
  /// The number of rows since `begin`.
  private(set) var count = 0

  init(withTypes: Bool) { self.withTypes = withTypes }

  /// The memory in bytes.
  var memory: Int { types.capacity }

  /// The bytes that `end` adds to the texts of the rows.
  var typesSize: Int { types.count }

  mutating func begin(_ out: inout ByteBuffer) {
    count = 0
    out.append(",\"elements\":[")
  }

  /// Adds a row.
  /// - Parameter type: the type as rows store it.
  mutating func append(_ text: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer, to out: inout ByteBuffer) {
    if count > 0 { out.append(UInt8(ascii: ",")) }
    out.append(text)
    if withTypes {
      if count > 0 { types.append(UInt8(ascii: ",")) }
      types.append(type: type)
    }
    count &+= 1
  }

  mutating func end(_ out: inout ByteBuffer) {
    out.append(UInt8(ascii: "]"))
    guard withTypes else { return }
    out.append(",\"types\":[")
    out.append(types.bytes)
    out.append(UInt8(ascii: "]"))
    types.removeAll(keepingCapacity: true)
  }
}

extension ByteBuffer {
  /// Appends a type as rows store it, or null if it is empty.
  mutating func append(type: UnsafeRawBufferPointer) {
    if type.isEmpty { append("null") } else { append(type) }
  }

  /// Appends `[{"name":…,"count":…},…]`.
  mutating func appendSectionList(_ sections: [any FeedSection]) {
    append(UInt8(ascii: "["))
    for (place, section) in sections.enumerated() {
      var name = section.name
      name.withUTF8 {
        appendSection(place, name: UnsafeRawBufferPointer($0), isByValue: section.isByValue, count: section.count)
      }
      append(UInt8(ascii: "}"))
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends `[{"name":…,"count":…},…]` for the sections of a feed.
  mutating func appendSectionList(of feed: Feed) {
    append(UInt8(ascii: "["))
    var place = 0
    feed.forEachSection { name, isByValue, count in
      appendSection(place, name: name, isByValue: isByValue, count: count)
      append(UInt8(ascii: "}"))
      place += 1
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends the beginning of the object of a section, `{"name":…,"count":…`, with the `key` of one by value, after a comma
  /// unless it is the first.
  mutating func appendSection(_ place: Int, name: UnsafeRawBufferPointer, isByValue: Bool, count: Int) {
    append(place > 0 ? ",{\"name\":" : "{\"name\":")
    appendJSONString(utf8: name)
    if isByValue { appendKey(ofSection: name) }
    append(",\"count\":", integer: count)
  }
}
