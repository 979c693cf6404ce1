import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `feeds`: describes the feeds that were defined when it began, in the order of their names, some in each part.
///
/// Feeds may change between two parts. Each is described as it is then; one that is gone by then has no entry.
final class FeedsJob: Job {
  /// Appends the description of a feed.
  typealias Describe = (_ feed: Feed, _ lists: inout SectionLists, _ out: inout ByteBuffer) -> Void

  /// The rows of `$feeds`, which name the feeds in order.
  private let names: FeedSnapshot
  private let engine: Engine
  private let peer: Peer
  private let describe: Describe
  private let text: ResultText
  private var isFirst = true

  init(_ names: FeedSnapshot, in engine: Engine, for reply: Reply, _ describe: @escaping Describe) {
    self.names = names
    self.engine = engine
    self.describe = describe
    peer = reply.session.peer
    text = ResultText(for: reply)
    text.buffer.bytes.append("\"revision\":", integer: engine.catalog.revision)
    text.buffer.bytes.append(",\"feeds\":[")
  }

  /// Feeds that are half changed are not described.
  var isWaiting: Bool { engine.longWork.isExclusive }
  var frame: TurnBuffer? { text.frame }
  var memory: Int { text.buffer.bytes.capacity }

  /// - Throws: `limitExceeded` if the answer does not fit in a frame.
  func advance(budget: inout Int) throws(FeedError) -> Bool {
    if isWaiting { return false }
    // Both are valid until feeds change.
    var lists = SectionLists()
    var readable = engine.access.readableFeeds(by: peer)
    budget = max(1, budget)
    while budget > 0 {
      let before = text.buffer.bytes.count
      let count = names.next(max: 1) { row in
        guard let feed = engine.catalog.feeds[Self.name(in: row)], readable.contains(feed) else { return }
        text.buffer.bytes.append(isFirst ? "{" : ",{")
        isFirst = false
        describe(feed, &lists, &text.buffer.bytes)
        text.buffer.bytes.append(UInt8(ascii: "}"))
      }
      if count == 0 { return try end() }
      budget -= WorkCost.answering(bytes: text.buffer.bytes.count &- before)
      try checkSize()
    }
    return false
  }

  private func end() throws(FeedError) -> Bool {
    text.buffer.bytes.append(UInt8(ascii: "]"))
    try checkSize()
    return true
  }

  private func checkSize() throws(FeedError) {
    let most = engine.limits.maxFrame
    if text.buffer.bytes.count > most + Frame.headerLength { throw .answerTooLarge(maxFrame: most) }
  }

  /// The name in a row of `$feeds`, `{"feed":"inbox",…}`. Names have no escapes.
  private static func name(in row: Row) -> String {
    let start = #"{"feed":""#.utf8.count
    return String(decoding: row.text.dropFirst(start).prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
  }

  func appendResult(to out: inout ByteBuffer) { out.append(text.buffer.bytes.bytes) }
}
