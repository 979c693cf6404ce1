import FeedJSON
import FeedModel
import FeedWire

/// The work that one batch may take, in units of about a microsecond.
///
/// A change waits for the batches before its own: at most one that is executed, and the open one. So a batch may not take long.
/// What a request takes is estimated before it joins. Estimates can be wrong, for example for costly filters, so the room
/// shrinks when a batch took long, and grows when a full one was quick.
///
/// Invariant: the room is between `least` and `most`.
struct BatchRoom {
  private(set) var work = most

  private static let least = 1
  private static let most = 1 << 14
  /// The time within which a batch should be executed, in nanoseconds.
  private static let longest: UInt64 = 40_000_000

  /// Adapts to a batch that was executed.
  ///
  /// - Parameters:
  ///   - work: the estimate for its requests.
  ///   - time: the time from its first turn to its last one, in nanoseconds; 0 if it took one turn.
  mutating func adapt(work: Int, time: UInt64) {
    if time > Self.longest {
      let share = Double(Self.longest) / Double(time)
      self.work = max(Self.least, min(self.work, Int(Double(work) * share)))
    } else if time < Self.longest / 2, work &* 2 >= self.work {
      self.work = min(Self.most, self.work &* 2)
    }
  }
}

extension Engine {
  /// The work of a request that changes a definition, besides that for rows.
  private static let definitionWork = 32
  /// The work of a request that may take long, if its rows are not counted.
  private static let slowWork = 2048

  /// An estimate of the work that a request adds to its batch, in units of about a microsecond.
  ///
  /// O(ops) for a short transaction, otherwise O(1). The operations of a long one are not looked at.
  func work(of method: Method, _ parameters: @autoclosure () -> Parameters, bytes: Int) -> Int {
    let work = WorkCost.answering(bytes: bytes)
    // Feeds that are half changed are not looked at.
    if longWork.isExclusive { return work &+ (Self.mayJudgeRows(method) ? Self.slowWork : 0) }
    if hasSlowFilters(parameters(), bytes: bytes) { return work &+ Self.slowWork }
    switch method {
    case .set: return work &+ rows(parameters().member("feed"))
    case .delete: return parameters().judgesAllElements ? work &+ rows(parameters().member("feed")) : work
    case .define: return work &+ Self.definitionWork &+ judgedRows(parameters())
    case .undefine, .activate, .insertChild, .removeChild: return work &+ Self.definitionWork
    case .transaction where bytes >= Self.shortTransaction: return work &+ Self.slowWork
    case .transaction: return work &+ workOfOperations(parameters().member("ops"))
    default: return work
    }
  }

  private static func mayJudgeRows(_ method: Method) -> Bool {
    switch method {
    case .set, .delete, .define, .transaction: true
    default: false
    }
  }

  private func workOfOperations(_ operations: JSONView?) -> Int {
    guard let operations, operations.kind == .array else { return 0 }
    return operations.elements.reduce(0) { sum, operation in
      guard let method = operation.member("method").flatMap({ Method($0) }), method != .transaction else { return sum }
      return sum &+ work(of: method, Parameters(object: operation.member("params")), bytes: 0)
    }
  }

  /// The rows that a definition judges, once for each four filters: those of the feed that it replaces, and of the source
  /// of a view.
  private func judgedRows(_ parameters: Parameters) -> Int {
    let filters = parameters.member("bins").map { $0.kind == .array ? $0.count : 0 } ?? 0
    return (rows(parameters.member("feed")) &+ rows(parameters.member("of"))) &* (1 &+ filters / 4)
  }

  /// The elements of a feed. Counting the rows of a feed that shows others may take long; for it the result is `slowWork`.
  private func rows(_ name: JSONView?) -> Int {
    guard let feed = feed(named: name) else { return 0 }
    return feed.kind.rows?.elementCount ?? Self.slowWork
  }
}
