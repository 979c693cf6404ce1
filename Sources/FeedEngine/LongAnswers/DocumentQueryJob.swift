import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// `query` with a path that needs all elements as one document. The document is built in parts, then scanned and evaluated in
/// parts. The size of the document and the steps of the path are limited.
final class DocumentQueryJob: Job {
  private let source: QuerySource
  private let document: QueryDocument
  private let evaluation: QueryEvaluation
  /// Whether the document is joined and cannot be evaluated at once.
  private var isLong = false

  var wantsStack: Bool { isLong && !evaluation.isOnStack }
  var memory: Int { document.memory + evaluation.memory }

  /// - Parameter isSingle: whether the document is the single's element instead of an array.
  init(_ path: JSONPath, over source: QuerySource, isSingle: Bool, places: Bool, on stack: QueryStack) {
    self.source = source
    document = QueryDocument(isArray: !isSingle, places: places)
    evaluation = QueryEvaluation(
      { path.evaluate($0, steps: &$1, pace: $2, $3) }, on: stack, limits: source.limits,
      maxDepth: source.limits.maxDepth + 1, places: places)
  }

  deinit {
    evaluation.cancel()
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    if isLong { return try evaluateLong() }
    var left = budget
    while !source.isFinished && left > 0 {
      let before = document.text.count
      let count = source.next(max: min(left, 64)) { element, place in
        if document.text.count <= source.limits.maxQueryBytes { document.append(element, place) }
      }
      left -= WorkCost.reading(max(1, count), bytes: document.text.count - before)
      if document.text.count > source.limits.maxQueryBytes {
        throw QueryNodes.tooLarge("maxQueryBytes", source.limits.maxQueryBytes, flag: "--max-query-bytes")
      }
    }
    guard source.isFinished else { return false }
    document.end()
    // A single without an element has no document.
    if document.text.isEmpty { return true }
    isLong = try evaluation.evaluateShort(document.text.bytes, place: document.place) == nil
    return !isLong
  }

  private func evaluateLong() throws(FeedError) -> Bool {
    guard evaluation.canGoOn else { return false }
    return try evaluation.evaluateLong(document.text.bytes, place: document.place)
  }

  func appendResult(to out: inout ByteBuffer) {
    evaluation.nodes.appendResult(to: &out, revision: source.revision, backwards: false)
  }
}

/// Elements as one JSON text: an array, or the only element.
private final class QueryDocument {
  private let isArray: Bool
  private(set) var text = ByteBuffer()
  /// The offset of each element in the text, with its place in the feed; nil if places are not requested.
  private var starts: [(offset: Int, place: IndexPath)]?

  init(isArray: Bool, places: Bool) {
    self.isArray = isArray
    starts = places ? [] : nil
    if isArray { text.append(UInt8(ascii: "[")) }
  }

  /// The memory in bytes.
  var memory: Int { text.capacity + (starts?.capacity ?? 0) * MemoryLayout<(Int, IndexPath)>.stride }

  func append(_ element: ElementText, _ place: IndexPath) {
    if text.count > 1 { text.append(UInt8(ascii: ",")) }
    starts?.append((text.count, place))
    text.append(element.text)
  }

  func end() {
    if isArray { text.append(UInt8(ascii: "]")) }
  }

  /// The place of the element that contains a node; nil for the array of all elements. O(log n).
  func place(of node: JSONView, _ root: JSONView) -> IndexPath? {
    guard let starts else { return nil }
    let offset = node.byteOffset - root.byteOffset
    let index = starts.indices.partitionPoint { starts[$0].offset <= offset }
    return index > 0 ? starts[index - 1].place : nil
  }
}
