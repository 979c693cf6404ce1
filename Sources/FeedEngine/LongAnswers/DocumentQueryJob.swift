import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// `query` with a path that needs all elements as one document. The document is built in parts, then the path is
/// evaluated once. The size of the document and the steps of the path are limited.
final class DocumentQueryJob: Job {
  private let path: JSONPath
  private let source: QuerySource
  /// Whether the document is the single's element instead of an array.
  private let isSingle: Bool
  private var scanner: JSONScanner
  private var document = ByteBuffer()
  private var isJoined = false

  /// The maximum bytes of a document that is evaluated in the turn that completes it.
  private static let shortDocument = 16 << 10

  var isIndivisible: Bool { source.isFinished && !isJoined }
  var memory: Int {
    document.capacity + scanner.capacity * QueryJob.tokenSize + nodes.memory + (starts?.capacity ?? 0) * 16
  }
  private var nodes: QueryNodes
  /// The offset of each element in the document, with its place in the feed; nil if places are not requested.
  private var starts: [(offset: Int, place: IndexPath)]?

  init(_ path: JSONPath, over source: QuerySource, isSingle: Bool, places: Bool) {
    self.path = path
    self.source = source
    self.isSingle = isSingle
    scanner = JSONScanner(maxDepth: source.limits.maxDepth + 1)
    nodes = QueryNodes(limits: source.limits, places: places)
    starts = places ? [] : nil
    nodes.beginGroup()
    if !isSingle { document.append(UInt8(ascii: "[")) }
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    if source.isFinished && document.count > Self.shortDocument { return try finish() }
    var left = budget
    while !source.isFinished && left > 0 {
      let before = document.count
      let count = source.next(max: min(left, 64)) { text, place in
        if document.count > 1 { document.append(UInt8(ascii: ",")) }
        starts?.append((document.count, place))
        document.append(text)
      }
      left -= WorkCost.reading(max(1, count), bytes: document.count - before)
      if document.count > source.limits.maxQueryBytes {
        throw QueryNodes.tooLarge("maxQueryBytes", source.limits.maxQueryBytes, flag: "--max-query-bytes")
      }
    }
    return source.isFinished && document.count <= Self.shortDocument ? try finish() : false
  }

  private func finish() throws(FeedError) -> Bool {
    isJoined = true
    if !isSingle { document.append(UInt8(ascii: "]")) }
    if document.count > 0 { try evaluate() }
    return true
  }

  private func evaluate() throws(FeedError) {
    let root: JSONView
    do {
      root = try scanner.scan(document.bytes)
    } catch {
      throw .internalError(reason: "the joined elements do not parse: \(error.message)")
    }
    var steps = source.limits.maxQuerySteps
    path.evaluate(root, steps: &steps) { nodes.append($0, at: place(of: $0, root)) }
    try nodes.check(steps: steps)
  }

  /// The place of the element that contains a node; nil for the array of all elements.
  private func place(of node: JSONView, _ root: JSONView) -> IndexPath? {
    guard let starts else { return nil }
    let offset = node.byteOffset - root.byteOffset
    let index = starts.indices.partitionPoint { starts[$0].offset <= offset }
    return index > 0 ? starts[index - 1].place : nil
  }

  func appendResult(to out: inout ByteBuffer) {
    nodes.appendResult(to: &out, revision: source.revision, backwards: false)
  }
}
