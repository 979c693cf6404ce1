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
  /// The members of the result, after the beginning of the frame if `isFrame`.
  private let text = TurnBuffer()
  /// Whether the answer is a frame of its own. Otherwise it is an entry of a batch, or not sent.
  private let isFrame: Bool
  private var isFirst = true

  init(_ names: FeedSnapshot, in engine: Engine, for reply: Reply, _ describe: @escaping Describe) {
    self.names = names
    self.engine = engine
    self.describe = describe
    peer = reply.session.peer
    isFrame = reply.id != nil && reply.session.line.array == nil
    if isFrame, let id = reply.id {
      _ = text.bytes.beginFrame()
      text.bytes.beginResult(id: id)
    }
    text.bytes.append("\"revision\":", integer: engine.catalog.revision)
    text.bytes.append(",\"feeds\":[")
  }

  /// Feeds that are half changed are not described.
  var isWaiting: Bool { engine.longWork.isExclusive }
  var frame: TurnBuffer? { isFrame ? text : nil }
  var memory: Int { text.bytes.capacity }

  /// - Throws: `limitExceeded` if the answer does not fit in a frame.
  func advance(budget: inout Int) throws(FeedError) -> Bool {
    if isWaiting { return false }
    // Both are valid until feeds change.
    var lists = SectionLists()
    var readable = engine.access.readableFeeds(by: peer)
    budget = max(1, budget)
    while budget > 0 {
      let before = text.bytes.count
      let count = names.next(max: 1) { row in
        guard let feed = engine.catalog.feeds[Self.name(in: row)], readable.contains(feed) else { return }
        text.bytes.append(isFirst ? "{" : ",{")
        isFirst = false
        describe(feed, &lists, &text.bytes)
        text.bytes.append(UInt8(ascii: "}"))
      }
      if count == 0 { return try end() }
      budget -= WorkCost.answering(bytes: text.bytes.count &- before)
      try checkSize()
    }
    return false
  }

  private func end() throws(FeedError) -> Bool {
    text.bytes.append(UInt8(ascii: "]"))
    try checkSize()
    return true
  }

  private func checkSize() throws(FeedError) {
    let most = engine.limits.maxFrame
    if text.bytes.count > most + Frame.headerLength { throw .answerTooLarge(maxFrame: most) }
  }

  /// The name in a row of `$feeds`, `{"feed":"inbox",…}`. Names have no escapes.
  private static func name(in row: Row) -> String {
    let start = #"{"feed":""#.utf8.count
    return String(decoding: row.text.dropFirst(start).prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
  }

  func appendResult(to out: inout ByteBuffer) { out.append(text.bytes.bytes) }
}
