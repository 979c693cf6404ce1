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

  /// Whether requests of it must be stored before they are executed, so that each turn's share is fixed beforehand.
  let isJournaled: Bool
  /// Requests that this turn executes; of a journaled batch only.
  private(set) var share = 0

  init(maxDepth: Int, isJournaled: Bool = false) {
    self.isJournaled = isJournaled
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

  /// Decides how many of the kept requests are executed in this turn: at most `budget`, and none behind one for which
  /// `examine`, which sees each, returns false.
  func prepareShare(budget: Int, _ examine: (JSONView) -> Bool) {
    share = 0
    guard var ahead = rest else { return }
    while share < budget, let message = ahead.next() {
      share += 1
      if !examine(message) { return }
    }
  }

  /// The next request of this turn's share; nil when it is used up.
  func nextOfShare() -> JSONView? {
    guard share > 0 else {
      // Asking past the last request ends the batch.
      if var ahead = rest, ahead.next() == nil { rest = nil }
      return nil
    }
    share -= 1
    return next()
  }

  /// The next of the kept requests; valid as long as this batch.
  func next() -> JSONView? {
    let message = rest?.next()
    if message == nil { rest = nil }
    return message
  }
}
