import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `range` and `snapshot` with many or long rows: the answer at one revision, written in parts while the feed changes.
final class RowsJob: Job {
  /// The largest number of rows that are answered at once.
  static let fewRows = 4096
  /// The largest number of bytes of elements that are answered at once.
  static let fewBytes = 1 << 20

  /// The members of the result, after the beginning of the frame if `isFrame`.
  private let text = TurnBuffer()
  /// Whether the answer is a frame of its own. Otherwise it is an entry of a batch, or not sent.
  private let isFrame: Bool
  private let maxFrame: Int
  private let snapshot: FeedSnapshot
  private var reader: SectionReader
  private var answer: RowsAnswer

  init(_ answer: consuming RowsAnswer, of snapshot: FeedSnapshot, for reply: Reply, maxFrame: Int) {
    self.answer = answer
    self.maxFrame = maxFrame
    self.snapshot = snapshot
    reader = SectionReader(snapshot)
    isFrame = reply.id != nil && reply.session.line.batch == nil
    if isFrame, let id = reply.id {
      _ = text.bytes.beginFrame()
      text.bytes.beginResult(id: id)
    }
    self.answer.begin(&text.bytes)
  }

  var frame: TurnBuffer? { isFrame ? text : nil }
  var memory: Int { text.bytes.capacity + answer.memory }

  /// - Throws: `limitExceeded` if the answer does not fit in a frame.
  func advance(budget: Int) throws(FeedError) -> Bool {
    let isDone = reader.advance(budget: budget) { item in
      if isTooLarge { return }
      switch item {
      case .begin(let section):
        answer.beginSection(section, count: Int(snapshot.sectionCounts[section]), &text.bytes)
      case .row(let row): answer.append(row, to: &text.bytes)
      case .end: answer.endSection(&text.bytes)
      }
    }
    if isTooLarge { throw .answerTooLarge(maxFrame: maxFrame) }
    if isDone { answer.end(&text.bytes) }
    return isDone
  }

  private var isTooLarge: Bool { text.bytes.count + answer.typesSize > maxFrame + Frame.headerLength }

  func appendResult(to out: inout ByteBuffer) { out.append(text.bytes.bytes) }
}

/// The members of the answer to `range` or `snapshot`, written one row after another.
struct RowsAnswer: ~Copyable {
  private let revision: UInt64
  /// The names of the sections, one after another.
  private var names = ByteBuffer()
  /// The end of each name in `names`; nil for `range`, whose only section is not described.
  private let ends: [Int]?
  /// Whether each section is one by value.
  private var areByValue: [Bool] = []
  private var rows: RowsWriter

  /// The answer to `range`.
  init(rangeOf feed: Feed) {
    revision = feed.revision
    ends = nil
    rows = RowsWriter(withTypes: true)
  }

  /// The answer to `snapshot`.
  init(sectionsOf feed: Feed) {
    revision = feed.revision
    rows = RowsWriter(withTypes: feed.hasTypes)
    var names = ByteBuffer()
    var ends: [Int] = []
    ends.reserveCapacity(feed.sectionCount)
    var areByValue: [Bool] = []
    areByValue.reserveCapacity(feed.sectionCount)
    feed.forEachSection { name, isByValue, _ in
      names.append(name)
      areByValue.append(isByValue)
      ends.append(names.count)
    }
    self.names = names
    self.ends = ends
    self.areByValue = areByValue
  }

  /// The memory in bytes.
  var memory: Int { rows.memory + names.capacity + areByValue.count + (ends?.count ?? 0) * MemoryLayout<Int>.stride }

  private func name(of section: Int, _ ends: [Int]) -> UnsafeRawBufferPointer {
    let start = section == 0 ? 0 : ends[section - 1]
    return UnsafeRawBufferPointer(rebasing: names.bytes[start..<ends[section]])
  }

  /// The bytes of the types that will follow the rows of this section.
  var typesSize: Int { rows.typesSize }

  func begin(_ out: inout ByteBuffer) {
    out.append("\"revision\":")
    out.append(integer: revision)
    if ends != nil { out.append(",\"sections\":[") }
  }

  mutating func beginSection(_ section: Int, count: Int, _ out: inout ByteBuffer) {
    if let ends {
      out.appendSection(section, name: name(of: section, ends), isByValue: areByValue[section], count: count)
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
