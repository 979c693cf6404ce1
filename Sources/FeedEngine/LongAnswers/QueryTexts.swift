import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// The texts over which a path is evaluated, one after another: elements of a snapshot, or all of them as one document.
protocol QueryTexts: AnyObject {
  var revision: UInt64 { get }
  /// Whether the path selects the texts in descending order. The nodes are reversed at the end.
  var areBackwards: Bool { get }
  /// The memory in bytes, besides that of the snapshot.
  var memory: Int { get }
  var isFinished: Bool { get }
  /// Returns the next text, which stays in place until ``didEvaluate()``; nil if there is none, or if the work that reading takes
  /// uses `left` up.
  func next(_ left: inout Int) throws(FeedError) -> UnsafeRawBufferPointer?
  /// The place of the element that contains a node of the text; nil for the array of all elements, or if places are not requested.
  func place(of node: JSONView, _ root: JSONView) -> IndexPath?
  /// Ends the use of the text.
  func didEvaluate()
}

/// The elements that a path selects, each as a text.
final class SelectedElements: QueryTexts {
  private let snapshot: FeedSnapshot
  let areBackwards: Bool
  /// The row that the path reads next; nil if none is left.
  private var wanted: Int?
  /// The rows that it reads after that, ascending.
  private var rows: ElementSelection
  private var row = 0
  /// The elements that were read and not evaluated, from `nextRead` on. Retained.
  private var read: [(element: ElementText, place: IndexPath)] = []
  private var nextRead = 0

  init(_ path: ElementwisePath, of snapshot: FeedSnapshot) {
    self.snapshot = snapshot
    let selection = path.selection(count: snapshot.count)
    areBackwards = selection.isDescending
    rows = selection.ascending
    wanted = rows.next()
  }

  deinit {
    while nextRead < read.count { didEvaluate() }
  }

  var revision: UInt64 { snapshot.revision }
  var memory: Int { 0 }
  var isFinished: Bool { nextRead == read.count && (wanted == nil || snapshot.isFinished) }

  func next(_ left: inout Int) -> UnsafeRawBufferPointer? {
    // Rows are read in order; rows that the path does not select are skipped.
    while left > 0 && !isFinished {
      if nextRead < read.count { return read[nextRead].element.text }
      left -= readRows(max: min(left, 64))
    }
    return nil
  }

  func place(of node: JSONView, _ root: JSONView) -> IndexPath? { read[nextRead].place }

  func didEvaluate() {
    read[nextRead].element.release()
    nextRead += 1
    if nextRead == read.count {
      read.removeAll(keepingCapacity: true)
      nextRead = 0
    }
  }

  /// Reads up to `max` rows of one section and keeps those that the path selects. Returns the number of rows.
  private func readRows(max: Int) -> Int {
    snapshot.forEachPlace(max: max) { element, place in
      defer { row += 1 }
      guard row == wanted else { return }
      element.retain()
      read.append((element, place))
      wanted = rows.next()
    }
  }
}

/// All elements as one JSON text: an array, or the only element. Its size is limited.
final class QueryDocument: QueryTexts {
  private let snapshot: FeedSnapshot
  private let isArray: Bool
  private let limits: Limits
  private var text = ByteBuffer()
  /// The offset of each element in the text, with its place in the feed; nil if places are not requested.
  private var starts: [(offset: Int, place: IndexPath)]?
  private var isComplete = false
  private(set) var isFinished = false

  init(of snapshot: FeedSnapshot, isArray: Bool, places: Bool, _ limits: Limits) {
    (self.snapshot, self.isArray, self.limits) = (snapshot, isArray, limits)
    starts = places ? [] : nil
    if isArray { text.append(UInt8(ascii: "[")) }
  }

  var revision: UInt64 { snapshot.revision }
  var areBackwards: Bool { false }
  var memory: Int { text.capacity + (starts?.capacity ?? 0) * MemoryLayout<(Int, IndexPath)>.stride }

  func next(_ left: inout Int) throws(FeedError) -> UnsafeRawBufferPointer? {
    while !snapshot.isFinished && left > 0 { try read(&left) }
    guard snapshot.isFinished, !isFinished else { return nil }
    if !isComplete {
      if isArray { text.append(UInt8(ascii: "]")) }
      isComplete = true
    }
    // A single without an element has no document.
    isFinished = text.isEmpty
    return isFinished ? nil : text.bytes
  }

  /// The bytes of elements after which there is a look at the work that is left.
  private static let bytesAtOnce = 64 << 10

  private func read(_ left: inout Int) throws(FeedError) {
    let before = text.count
    let count = snapshot.forEachPlace(max: min(left, 64), bytes: Self.bytesAtOnce) { element, place in
      if text.count > limits.maxQueryBytes { return }
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      starts?.append((text.count, place))
      text.append(element.text)
    }
    left -= WorkCost.reading(max(1, count), bytes: text.count - before)
    if text.count > limits.maxQueryBytes { throw QueryNodes.tooLarge(\.maxQueryBytes, limits) }
  }

  /// O(log n).
  func place(of node: JSONView, _ root: JSONView) -> IndexPath? {
    guard let starts else { return nil }
    let offset = node.byteOffset - root.byteOffset
    let index = starts.indices.partitionPoint { starts[$0].offset <= offset }
    return index > 0 ? starts[index - 1].place : nil
  }

  func didEvaluate() { isFinished = true }
}

extension FeedSnapshot {
  /// Calls `body` with up to `max` elements of one section and their places, and with none after these have `bytes` bytes. Returns the
  /// number of elements; 0 at the end.
  fileprivate func forEachPlace(
    max: Int, bytes: Int = .max, _ body: (ElementText, IndexPath) -> Void
  ) -> Int {
    let place = place
    var row = place.row
    return next(max: max, bytes: bytes) {
      body($0.element, IndexPath(section: place.section, row: row))
      row &+= 1
    }
  }
}
