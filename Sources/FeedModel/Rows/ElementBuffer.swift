import FeedJSON

/// The elements of a request's array, each compact, valid as long as the request's bytes and this buffer.
///
/// Elements that carry white space are copied without it, all into one document, so that any two can be compared as texts.
final class ElementBuffer {
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private(set) var views: [JSONView]

  init(compacting array: JSONView, maxDepth: Int) {
    scanner = JSONScanner(maxDepth: maxDepth)
    views = Array(array.elements)
    if array.isCompact || views.allSatisfy(\.isCompact) { return }
    bytes.append(compact: array)
    if let compact = try? scanner.scan(bytes.bytes) { views = Array(compact.elements) }
  }
}
