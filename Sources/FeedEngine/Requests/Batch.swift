import FeedJSON

/// A JSON-RPC batch under way: the answers so far, and the requests to which there was no time yet.
///
/// Most batches are over when their frame is. One that is not keeps a copy of its remaining requests.
final class Batch {
  /// The answers, with commas between them.
  let answers = TurnBuffer()
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private var rest: JSONView.Elements?

  init(maxDepth: Int) {
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// Whether requests are left.
  var isUnfinished: Bool { rest != nil }

  /// Keeps a copy of the requests from `first` to the last of `messages`.
  func keep(from first: JSONView, of messages: JSONView) {
    let start = first.byteOffset - messages.byteOffset
    bytes.append(UInt8(ascii: "["))
    bytes.append(UnsafeRawBufferPointer(rebasing: messages.text[start...]))
    // What was an array still is one without its first elements.
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// The next of the kept requests; valid as long as this batch.
  func next() -> JSONView? {
    let message = rest?.next()
    if message == nil { rest = nil }
    return message
  }
}
