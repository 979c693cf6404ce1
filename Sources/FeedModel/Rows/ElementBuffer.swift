import FeedJSON

/// The elements of an array of a request as compact texts. Valid as long as the bytes of the request and this buffer.
///
/// Elements with white space are copied without it into one document, so that any two elements can be compared as
/// texts.
final class ElementBuffer {
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private(set) var views: [JSONView]

  init(compacting array: JSONView, maxDepth: Int, _ pace: Pace) {
    scanner = JSONScanner(maxDepth: maxDepth)
    views = Self.elements(of: array, pace)
    if array.isCompact || views.allSatisfy(\.isCompact) { return }
    bytes.append(compact: array)
    if let compact = try? scanner.scan(bytes.bytes, pace) { views = Self.elements(of: compact, pace) }
  }

  private static func elements(of array: JSONView, _ pace: Pace) -> [JSONView] {
    var views: [JSONView] = []
    views.reserveCapacity(array.count)
    for view in array.elements {
      views.append(view)
      if views.count & 31 == 0 { pace.spend() }
    }
    return views
  }
}
