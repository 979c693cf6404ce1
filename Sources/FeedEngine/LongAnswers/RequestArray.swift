import FeedJSON

/// A JSON-RPC batch in progress: the answers so far, and the requests that were not executed yet.
///
/// Most batches are executed in the turn that decodes them. Others are continued in the next turns.
final class RequestArray {
  /// The frame of the answers so far, without its last bracket; empty if there are none.
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

  /// Begins an entry in the array of answers. Returns the size of the answers before it.
  func openEntry() -> Int {
    let start = answers.bytes.count
    if start == 0 {
      _ = answers.bytes.beginFrame()
      answers.bytes.append(UInt8(ascii: "["))
    } else {
      answers.bytes.append(UInt8(ascii: ","))
    }
    return start
  }

  /// The size of the array of answers so far, with its brackets.
  var answersSize: Int { max(0, answers.bytes.count - Self.head) + 2 }

  /// Removes the last entry, which was opened at `start`, and returns it.
  func takeEntry(from start: Int) -> [UInt8] {
    let entry = Array(answers.bytes.bytes[(start > 0 ? start + 1 : Self.head)...])
    answers.bytes.truncate(to: start)
    return entry
  }

  /// The bytes of the frame's length and the first bracket.
  private static let head = 5

  /// Whether requests are left.
  var isUnfinished: Bool { rest != nil }

  /// Copies all requests of `messages`, which is not empty.
  func keep(_ messages: JSONView) {
    bytes.append(messages.text)
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// Copies all requests of an array that was scanned in parts, and takes its tokens.
  func keep(_ text: LongText, of message: UnsafeRawBufferPointer) {
    assert(text.isComplete)
    bytes.append(message)
    swap(&scanner, &text.scanner)
    rest = scanner.view(at: 0, of: bytes.bytes).elements
  }

  /// Returns the next copied request; nil if there is none. Valid as long as this object.
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
  func sendAnswers(of array: RequestArray, to session: Session) {
    if array.answers.bytes.isEmpty { return }
    array.answers.bytes.append(UInt8(ascii: "]"))
    array.answers.bytes.endFrame(at: 0)
    queue(session, taking: array.answers)
  }
}
