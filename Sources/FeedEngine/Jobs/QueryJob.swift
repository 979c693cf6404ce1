import FeedJSON
import FeedModel
import FeedQuery

/// `query`: a JSONPath over the array of a feed's elements in flattened order, as of one revision.
///
/// A path that looks at elements one by one is evaluated so, in parts. Any other needs the whole array as one document:
/// the elements are joined in parts and the path is evaluated over them at the end.
final class QueryJob: Job {
  private let path: JSONPath
  private let snapshot: FeedSnapshot
  private let limits: Limits
  private var section = 0
  private var scanner: JSONScanner
  private var document = ByteBuffer()
  private var nodes = ByteBuffer()
  private var failure: FeedError?

  init(_ path: JSONPath, over feed: Feed, limits: Limits) {
    self.path = path
    self.limits = limits
    snapshot = feed.makeSnapshot()
    scanner = JSONScanner(maxDepth: limits.maxDepth + 1)
    document.append(UInt8(ascii: "["))
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var left = budget
    while section < snapshot.sections.count && left > 0 {
      let rows = snapshot.sections[section]
      left -= rows.next(max: left) { text in
        if document.count > 1 { document.append(UInt8(ascii: ",")) }
        document.append(text.text)
      }
      if document.count > limits.maxQueryBytes { throw tooLarge("maxQueryBytes", limits.maxQueryBytes) }
      if rows.position >= rows.count { section += 1 }
    }
    if section < snapshot.sections.count { return false }
    try evaluate()
    return true
  }

  private func evaluate() throws(FeedError) {
    document.append(UInt8(ascii: "]"))
    let root: JSONView
    do {
      root = try scanner.scan(document.bytes)
    } catch {
      throw .internalError(reason: "the joined elements do not parse: \(error.message)")
    }
    path.evaluate(root) { node in
      if nodes.count > limits.maxFrame { return }
      if nodes.count > 0 { nodes.append(UInt8(ascii: ",")) }
      nodes.append(compact: node)
    }
    if nodes.count > limits.maxFrame { throw tooLarge("maxFrame", limits.maxFrame) }
  }

  private func tooLarge(_ limit: String, _ value: Int) -> FeedError {
    .limitExceeded(limit: limit, value: value, reason: "narrow the path, or watch the feed and query your copy")
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"nodes\":[")
    out.append(nodes.bytes)
    out.append("],\"revision\":")
    out.append(integer: snapshot.revision)
  }
}
