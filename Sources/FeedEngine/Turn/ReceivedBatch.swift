import FeedJSON
import FeedModel
import FeedWire

/// A batch of another member of the log, or one that a start executes again: executed request by request, without answers.
///
///     let received = ReceivedBatch(batch, engine)
///     while try received.step() == .executed {}     // in this turn or in later ones
///
/// It has the effect that it had when it was executed first. A long text is scanned in parts, and a long request is executed in
/// slices (``LongWork``). Invariant: `offset` is that of the frame that is executed next or in part.
final class ReceivedBatch {
  /// What a step did.
  enum Step {
    /// A request was executed.
    case executed
    /// A request was scanned or executed in part.
    case underWay
    /// All requests are executed.
    case done
  }

  /// The tokens of a long text that one step scans.
  private static let tokensPerStep = 1 << 15

  private let batch: LogBatch
  private let engine: Engine
  /// Whether a start executes the batch again.
  private let isReplayed: Bool
  private var offset = 0
  /// The bytes of the frame that is executed in part.
  private var length = 0
  private var scanner: JSONScanner

  init(_ batch: LogBatch, _ engine: Engine, isReplayed: Bool = false) {
    (self.batch, self.engine, self.isReplayed) = (batch, engine, isReplayed)
    scanner = JSONScanner(maxDepth: engine.limits.maxDepth + InternalRequest.depth)
    engine.ownWork.owner = nil
  }

  var moment: Instant { batch.at }
  var byteCount: Int { batch.frames.count }

  /// Executes the next request, or a part of it. No long work is under way.
  func step() throws(ReplayError) -> Step {
    if offset == batch.frames.count { return .done }
    let rest = UnsafeRawBufferPointer(rebasing: batch.frames[offset...])
    guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else { throw .damaged(offset: offset) }
    length = Frame.headerLength + payload.count
    let message: JSONView?
    do throws(JSONError) {
      message = try scan(payload)
    } catch {
      // A text that is not JSON had no effect the first time.
      return finish()
    }
    guard let message else { return .underWay }
    return try execute(message, bytes: payload.count) ? finish() : .underWay
  }

  /// The long work of the request ended.
  func didFinishLongWork() { _ = finish() }

  private func finish() -> Step {
    offset += length
    // A daemon does this between turns for its own batches.
    engine.trimHistories()
    return .executed
  }

  /// Scans a text, or a part of a long one. Returns nil if more is left.
  private func scan(_ payload: UnsafeRawBufferPointer) throws(JSONError) -> JSONView? {
    if !LongTexts.isLong(payload.count) { return try scanner.scan(payload) }
    return try scanner.scanPart(payload, tokens: Self.tokensPerStep)
  }

  /// Executes a request. Returns false if it takes another turn.
  private func execute(_ message: JSONView, bytes: Int) throws(ReplayError) -> Bool {
    let engine = engine
    let request: InternalRequest?
    let limits = engine.limits.applied(by: engine.commit.rules)
    do { request = try InternalRequest(message, limits: limits) } catch { throw .damaged(offset: offset) }
    if let request {
      if engine.mayBeLong(request) {
        return engine.longWork.run(steps: 0) { engine.execute(request, isLogged: true, isOwn: false) }
      }
      engine.execute(request, isLogged: true, isOwn: false)
      return true
    }
    var id: JSONView?
    // A request that could not be decoded had no effect the first time, and has none now.
    guard let (method, decoded) = try? engine.decode(message, id: &id) else { return true }
    if isReplayed, engine.commit.rules < 2, let member = decoded.memberUnknown(toRulesBefore2: method) {
      throw .otherMeaning(member: member)
    }
    let (identity, parameters) = (decoded.id, Parameters(object: decoded.params))
    guard engine.mayBeLong(method, parameters, bytes: bytes) else {
      engine.executeSilently(method, identity, parameters)
      return true
    }
    return engine.longWork.run(steps: engine.expectedSteps(of: method, parameters, bytes: bytes)) {
      engine.executeSilently(method, identity, parameters)
    }
  }
}
