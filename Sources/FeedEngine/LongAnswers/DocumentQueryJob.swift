import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// `query` with a path that needs all elements as one document: they are joined in parts, and the path is evaluated over
/// them at the end. The size of the document and the steps of the path are limited.
final class DocumentQueryJob: Job {
  private let path: JSONPath
  private let source: QuerySource
  /// Whether the document is the one element of a single instead of an array.
  private let isSingle: Bool
  private var scanner: JSONScanner
  private var document = ByteBuffer()
  private var nodes: QueryNodes

  init(_ path: JSONPath, over source: QuerySource, isSingle: Bool) {
    self.path = path
    self.source = source
    self.isSingle = isSingle
    scanner = JSONScanner(maxDepth: source.limits.maxDepth + 1)
    nodes = QueryNodes(limits: source.limits)
    nodes.beginGroup()
    if !isSingle { document.append(UInt8(ascii: "[")) }
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var left = budget
    while !source.isFinished && left > 0 {
      left -= source.next(max: left) { text in
        if document.count > 1 { document.append(UInt8(ascii: ",")) }
        document.append(text)
      }
      if document.count > source.limits.maxQueryBytes {
        throw QueryNodes.tooLarge("maxQueryBytes", source.limits.maxQueryBytes)
      }
    }
    guard source.isFinished else { return false }
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
    path.evaluate(root, steps: &steps) { nodes.append($0) }
    try nodes.check(steps: steps)
  }

  func appendResult(to out: inout ByteBuffer) {
    nodes.appendResult(to: &out, revision: source.revision, backwards: false)
  }
}
