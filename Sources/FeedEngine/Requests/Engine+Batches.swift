import FeedJSON
import FeedModel
import FeedWire

/// JSON-RPC batches: each request on its own, the answers in one array, no answer when nobody asked for one.
///
/// A batch stops at an answer that is worked out in parts, after its share of a turn, and while its connection is full, and
/// goes on in a later turn. Answers that together exceed a frame come in several arrays, so that each arrives.
extension Engine {
  /// Requests of one batch that are executed in a turn.
  private static let batchBudget = 1024

  func handleBatch(_ messages: JSONView, of session: Session) {
    if messages.count == 0 {
      return refuse(makeReply(to: session, id: nil), .invalidRequest(reason: "a batch must hold at least one request"))
    }
    if isDurable && !isReplaying && messages.elements.contains(where: { method(of: $0)?.isLogged ?? false }) {
      return postpone(messages, of: session)
    }
    let batch = Batch(maxDepth: limits.maxDepth)
    session.batch = batch
    var elements = messages.elements
    var budget = Self.batchBudget
    while let message = elements.next() {
      if !mayGoOn(session, budget) {
        batch.keep(from: message, of: messages)
        break
      }
      handleRequest(message, of: session)
      budget -= 1
    }
    stopBatch(batch, of: session)
  }

  /// Keeps a batch that must be stored for the next turn, which stores its share of it before executing that.
  private func postpone(_ messages: JSONView, of session: Session) {
    guard let first = messages.element(at: 0) else { return }
    let batch = Batch(maxDepth: limits.maxDepth, isJournaled: true)
    session.batch = batch
    batch.keep(from: first, of: messages)
    keepWorking(session)
  }

  /// Decides which requests of batches this turn executes, and puts those that must be stored into the journal.
  func prepareBatches() {
    for session in workingSessions {
      guard let batch = session.batch, batch.isJournaled, session.work == nil, session.output.count <= limits.maxQueue
      else { continue }
      batch.prepareShare(budget: Self.batchBudget) { message in
        guard let method = method(of: message) else { return true }
        if method.isLogged && mayStore(method, message, of: session) { store(message) }
        return method.rules.cost != .long
      }
    }
  }

  private func store(_ message: JSONView) {
    let start = journal.beginFrame()
    journal.append(message.text)
    journal.endFrame(at: start)
  }

  /// Executes what `prepareBatches` decided on.
  func executeBatches() {
    for session in workingSessions {
      guard let batch = session.batch, batch.isJournaled, session.work == nil else { continue }
      while let message = batch.nextOfShare() { handleRequest(message, of: session) }
      stopBatch(batch, of: session)
    }
  }

  /// Executes further requests of the batch of a session that is not working on an answer.
  func goOnWithBatch(of session: Session) {
    guard let batch = session.batch, !batch.isJournaled else { return }
    var budget = Self.batchBudget
    while mayGoOn(session, budget), let message = batch.next() {
      handleRequest(message, of: session)
      budget -= 1
    }
    stopBatch(batch, of: session)
  }

  private func mayGoOn(_ session: Session, _ budget: Int) -> Bool {
    budget > 0 && session.work == nil && session.output.count <= limits.maxQueue
  }

  /// Ends the batch, or leaves it for a later turn.
  private func stopBatch(_ batch: Batch, of session: Session) {
    if session.work != nil || batch.isUnfinished { return keepWorking(session) }
    sendAnswers(of: batch, to: session)
    session.batch = nil
  }

  /// Queues the answers that a batch has so far.
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
