import FeedJSON

/// A JSON-RPC batch in progress: the answers so far, and the requests that were not executed yet.
///
/// Most batches are executed in the turn that decodes them. Otherwise this object keeps a copy of the remaining
/// requests.
final class Batch {
  /// The answers, separated by commas.
  let answers = TurnBuffer()
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private var rest: JSONView.Elements?
  /// The remaining requests before the last call of `next`.
  private var previous: JSONView.Elements?

  init(maxDepth: Int) {
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// The memory in bytes: the copy of the requests, its tokens, and the answers.
  var memory: Int { bytes.capacity + scanner.capacity * JSONScanner.tokenSize + answers.bytes.capacity }

  /// Whether requests are left.
  var isUnfinished: Bool { rest != nil }

  /// Copies the requests of `messages` from `first` on.
  func keep(from first: JSONView, of messages: JSONView) {
    let start = first.byteOffset - messages.byteOffset
    bytes.append(UInt8(ascii: "["))
    bytes.append(UnsafeRawBufferPointer(rebasing: messages.text[start...]))
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// Copies all requests of `messages`, which is not empty.
  func keep(all messages: JSONView) {
    bytes.append(messages.text)
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// Copies all requests of an array that was scanned in parts, and takes its tokens.
  func keep(all text: LongText, of message: UnsafeRawBufferPointer) {
    assert(text.isComplete)
    bytes.append(message)
    swap(&scanner, &text.scanner)
    rest = scanner.view(at: 0, of: bytes.bytes).elements
  }

  /// Returns the next copied request; nil if there is none. Valid as long as this batch.
  func next() -> JSONView? {
    previous = rest
    let message = rest?.next()
    if message == nil
      || rest.map({
        var ahead = $0; return ahead.next() == nil
      }) ?? true
    {
      rest = nil
    }
    return message
  }

  /// Makes ``next()`` return its last request again.
  func putBack() { rest = previous }
}

extension Engine {
  /// Queues the answers so far.
  func sendAnswers(of batch: Batch, to session: Session) {
    if batch.answers.bytes.isEmpty { return }
    let start = answers.bytes.beginFrame()
    answers.bytes.append(UInt8(ascii: "["))
    answers.bytes.append(batch.answers.bytes.bytes)
    answers.bytes.append(UInt8(ascii: "]"))
    answers.bytes.endFrame(at: start)
    batch.answers.bytes.removeAll(keepingCapacity: false)
    queue(session, answers, from: start)
  }
}
