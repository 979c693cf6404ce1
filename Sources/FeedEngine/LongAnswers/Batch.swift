import FeedJSON

/// A JSON-RPC batch under way: the answers so far, and the requests that are not executed yet.
///
/// Most batches are executed in the turn that decodes them. Another one keeps a copy of its remaining requests.
final class Batch {
  /// The answers, with commas between them.
  let answers = TurnBuffer()
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private var rest: JSONView.Elements?
  /// The rest before the last call of `next`.
  private var previous: JSONView.Elements?

  init(maxDepth: Int) {
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// Bytes of memory held: the copy of the requests, its tokens, and the answers.
  var memory: Int { bytes.capacity + scanner.capacity * QueryJob.tokenSize + answers.bytes.capacity }

  /// Whether requests are left.
  var isUnfinished: Bool { rest != nil }

  /// Keeps a copy of the requests from `first` to the last of `messages`.
  func keep(from first: JSONView, of messages: JSONView) {
    let start = first.byteOffset - messages.byteOffset
    bytes.append(UInt8(ascii: "["))
    bytes.append(UnsafeRawBufferPointer(rebasing: messages.text[start...]))
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// Keeps a copy of all requests of `messages`, of which there is at least one.
  func keep(all messages: JSONView) {
    bytes.append(messages.text)
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// The next of the kept requests; valid as long as this batch.
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

  /// Lets ``next()`` return its last request again.
  func putBack() { rest = previous }
}

extension Engine {
  /// Queues the answers of a batch so far.
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
