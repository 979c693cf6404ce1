import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Reads the rows of all sections of a snapshot in order, in parts.
struct SectionReader {
  /// What is read, in order: for each section its beginning, its rows and its end.
  enum Item {
    case begin(section: Int)
    case row(Row)
    case end
  }

  /// The number of short rows that are read between two looks at the budget.
  private static let rowsAtOnce = 16
  /// The bytes of elements after which there is another look.
  private static let bytesAtOnce = 64 << 10

  private let snapshot: FeedSnapshot
  private var section = 0
  private var hasBegun = false

  init(_ snapshot: FeedSnapshot) { self.snapshot = snapshot }

  /// Reads for about `left` units of work, but at least one row, and subtracts what it took. Returns whether everything was read.
  mutating func advance(budget left: inout Int, _ body: (Item) -> Void) -> Bool {
    left = max(1, left)
    while section < snapshot.sectionCounts.count && left > 0 {
      if !hasBegun {
        hasBegun = true
        left -= 1
        body(.begin(section: section))
      }
      var bytes = 0
      // Sections without rows are not read.
      if section == snapshot.section {
        let count = snapshot.next(max: min(max(1, left), Self.rowsAtOnce), bytes: Self.bytesAtOnce) { row in
          bytes += row.text.count
          body(.row(row))
        }
        left -= WorkCost.reading(count, bytes: bytes)
      }
      if section < snapshot.section {
        body(.end)
        section += 1
        hasBegun = false
      }
    }
    return section == snapshot.sectionCounts.count
  }
}

/// `range` and `snapshot` with many or long rows: the answer at one revision, written in parts while the feed changes.
final class RowsJob: Job {
  /// The largest number of rows that are answered at once.
  static let fewRows = 4096
  /// The largest number of bytes of elements that are answered at once.
  static let fewBytes = 1 << 20

  private let text: ResultText
  private let maxFrame: Int
  private var reader: SectionReader
  private var answer: RowsAnswer

  init(_ answer: consuming RowsAnswer, of snapshot: FeedSnapshot, for reply: Reply, maxFrame: Int) {
    self.answer = answer
    self.maxFrame = maxFrame
    reader = SectionReader(snapshot)
    text = ResultText(for: reply)
    self.answer.begin(&text.buffer.bytes)
  }

  var frame: TurnBuffer? { text.frame }
  var memory: Int { text.buffer.bytes.capacity + answer.memory }

  /// - Throws: `limitExceeded` if the answer does not fit in a frame.
  func advance(budget: inout Int) throws(FeedError) -> Bool {
    let isDone = reader.advance(budget: &budget) { item in
      if isTooLarge { return }
      switch item {
      case .begin(let section): answer.beginSection(section, &text.buffer.bytes)
      case .row(let row): answer.append(row, to: &text.buffer.bytes)
      case .end: answer.endSection(&text.buffer.bytes)
      }
    }
    if isTooLarge { throw .answerTooLarge(maxFrame: maxFrame) }
    if isDone { answer.end(&text.buffer.bytes) }
    return isDone
  }

  private var isTooLarge: Bool { text.buffer.bytes.count + answer.typesSize > maxFrame + Frame.headerLength }

  func appendResult(to out: inout ByteBuffer) { out.append(text.buffer.bytes.bytes) }
}

/// The members of the answer to `range` or `snapshot`, written one row after another.
struct RowsAnswer: ~Copyable {
  private let revision: UInt64
  /// The beginnings of the objects of the sections, one after another.
  private var heads = ByteBuffer()
  /// The end of each of them; nil for `range`, whose only section is not described.
  private let ends: [Int]?
  private var rows: RowsWriter

  init(rangeOf feed: Feed) {
    revision = feed.revision
    ends = nil
    rows = RowsWriter(withTypes: true)
  }

  /// The answer to `snapshot`.
  init(sectionsOf feed: Feed) {
    revision = feed.revision
    rows = RowsWriter(withTypes: feed.hasTypes)
    var heads = ByteBuffer()
    var ends: [Int] = []
    ends.reserveCapacity(feed.sectionCount)
    feed.forEachSection { name, isByValue, count in
      heads.appendSection(ends.count, name: name, isByValue: isByValue, count: count)
      ends.append(heads.count)
    }
    self.heads = heads
    self.ends = ends
  }

  /// The memory in bytes.
  var memory: Int { rows.memory + heads.capacity + (ends?.count ?? 0) * MemoryLayout<Int>.stride }

  /// The bytes of the types that will follow the rows of this section.
  var typesSize: Int { rows.typesSize }

  func begin(_ out: inout ByteBuffer) {
    out.append("\"revision\":", integer: revision)
    if ends != nil { out.append(",\"sections\":[") }
  }

  mutating func beginSection(_ section: Int, _ out: inout ByteBuffer) {
    if let ends {
      let start = section == 0 ? 0 : ends[section - 1]
      out.append(UnsafeRawBufferPointer(rebasing: heads.bytes[start..<ends[section]]))
    }
    rows.begin(&out)
  }

  @inline(__always) mutating func append(_ row: Row, to out: inout ByteBuffer) {
    rows.append(row.text, type: row.type, to: &out)
  }

  mutating func endSection(_ out: inout ByteBuffer) {
    rows.end(&out)
    if ends != nil { out.append(UInt8(ascii: "}")) }
  }

  func end(_ out: inout ByteBuffer) {
    if ends != nil { out.append(UInt8(ascii: "]")) }
  }
}

/// `feeds` and `clients`: describes the feeds or connections that were there when it began, some in each part.
///
/// Each is described as it is then; one that is gone by then has no entry.
final class ListJob: Job {
  /// Appends the next entry, an object, or nothing if that is gone. Returns whether it had one to append.
  typealias Entries = (_ out: inout ByteBuffer) -> Bool

  private let engine: Engine
  private let beginPart: () -> Entries
  private let text: ResultText
  private let listBytes: Int

  /// - Parameters:
  ///   - listBytes: the memory of the list of what is described, unless it is charged otherwise.
  ///   - head: appends the members of the result up to the bracket before the entries.
  ///   - beginPart: called before each part, during which no feeds change.
  init(
    of engine: Engine, for reply: Reply, listBytes: Int = 0, head: (inout ByteBuffer) -> Void,
    _ beginPart: @escaping () -> Entries
  ) {
    (self.engine, self.beginPart, self.listBytes) = (engine, beginPart, listBytes)
    text = ResultText(for: reply)
    head(&text.buffer.bytes)
  }

  /// Feeds that are half changed are not described.
  var isWaiting: Bool { engine.longWork.isExclusive }
  var frame: TurnBuffer? { text.frame }
  var memory: Int { text.buffer.bytes.capacity + listBytes }

  /// - Throws: `limitExceeded` if the answer does not fit in a frame.
  func advance(budget: inout Int) throws(FeedError) -> Bool {
    if isWaiting { return false }
    let appendNext = beginPart()
    budget = max(1, budget)
    while budget > 0 {
      let before = text.buffer.bytes.count
      if !appendNext(&text.buffer.bytes) { return try end() }
      if text.buffer.bytes.count > before { text.buffer.bytes.append(UInt8(ascii: ",")) }
      budget -= WorkCost.answering(bytes: text.buffer.bytes.count &- before)
      try checkSize()
    }
    return false
  }

  private func end() throws(FeedError) -> Bool {
    let count = text.buffer.bytes.count
    if text.buffer.bytes.bytes.last == UInt8(ascii: ",") { text.buffer.bytes.truncate(to: count &- 1) }
    text.buffer.bytes.append(UInt8(ascii: "]"))
    try checkSize()
    return true
  }

  private func checkSize() throws(FeedError) {
    let most = engine.limits.maxFrame
    if text.buffer.bytes.count > most + Frame.headerLength { throw .answerTooLarge(maxFrame: most) }
  }

  func appendResult(to out: inout ByteBuffer) { out.append(text.buffer.bytes.bytes) }
}
