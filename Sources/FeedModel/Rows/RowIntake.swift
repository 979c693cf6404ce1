import FeedChange
import FeedJSON

/// Converting the JSON of a request to a stored version.
extension RowStore {
  /// The maximum bytes of a type. An element with a longer type has none, so that element and type fit in a frame.
  private var longestType: Int { min(1024, limits.maxFrame / 8) }

  /// Returns the element without white space outside strings; the same view if it has none.
  func compact(_ given: JSONView, index place: Int, _ pace: Pace? = nil) throws(FeedError) -> JSONView {
    var element = given
    if !given.isCompact {
      do {
        element = try scratch.compact(given, pace)
      } catch {
        throw .internalError(reason: "an element did not survive the removal of white space: \(error.message)")
      }
    }
    guard element.text.count <= limits.elementRoom else {
      throw limits.exceeded(
        limits.elementRoom < limits.maxElementBytes ? \.maxFrame : \.maxElementBytes,
        "element \(grouped(place)) has \(grouped(element.text.count)) bytes, and at most \(grouped(limits.elementRoom)) "
          + "are allowed; push a smaller one")
    }
    return element
  }

  /// Throws if there is no room for an element. One that is not longer than what it replaces has room always.
  /// - Parameters:
  ///   - keys: the bytes of its sort keys; 0 by older rules, and where elements have none.
  ///   - known: the element that is replaced; nil for none.
  func checkRoom(
    for element: JSONView, keys: Int = 0, replacing known: UInt32? = nil, _ log: UndoLog
  ) throws(FeedError) {
    let isNew = known == nil
    if isNew && elements.count >= limits.maxElements {
      throw limits.exceeded(\.maxElements, "\(feed) is full; take elements away")
    }
    var added = element.text.count &+ keys
    if let known, log.rules >= 4 {
      let before = elements.text(of: known)
      added &-= before.text.count &+ (keys > 0 ? before.keys.count : 0)
      if added <= 0 { return }
    }
    if elements.bytes &+ added > limits.maxBytes {
      throw limits.exceeded(\.maxBytes, "\(feed) holds \(counted(elements.bytes, "byte")); take elements away")
    }
    if !elements.hasRoom(bytes: added, isNew: isNew, limits) {
      throw elements.noRoom(bytes: added, isNew: isNew, limits)
    }
  }

  /// Creates a version of a compact element.
  /// - Parameter place: the value in the element that is its identity.
  func makeText(
    _ element: JSONView, identity: UnsafeRawBufferPointer, at place: JSONView?,
    keys: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) throws(FeedError) -> ElementText {
    // From other numbers the identity cannot be read.
    let isReadable = place.map { $0.kind == .string || $0.isShortInteger } ?? false
    let range = isReadable ? place.map { Self.range(of: $0, in: element) } ?? 0..<0 : 0..<0
    let made = ElementText(identity: identity, at: range, keys: keys, text: element.text, type: typeRange(in: element))
    guard let text = made else {
      throw .internalError(reason: "there is no memory for an element of \(counted(element.text.count, "byte"))")
    }
    return text
  }

  /// The range of the type in the element's text; empty if it has none.
  private func typeRange(in element: JSONView) -> Range<Int> {
    guard let type = type?.resolve(element), type.kind == .string, type.text.count <= longestType else { return 0..<0 }
    return Self.range(of: type, in: element)
  }

  /// The range of a value in the text of its element.
  @inline(__always)
  private static func range(of value: JSONView, in element: JSONView) -> Range<Int> {
    let start = value.byteOffset &- element.byteOffset
    return start..<(start &+ value.text.count)
  }
}

/// Memory to read elements with, used for each of them again.
struct ElementScratch: ~Copyable {
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private var compacted = ByteBuffer()

  /// Returns an element without white space outside strings. Valid until the next call.
  mutating func compact(_ given: JSONView, _ pace: Pace?) throws(JSONError) -> JSONView {
    compacted.removeAll(keepingCapacity: true)
    compacted.append(compact: given)
    return try scanner.scan(compacted.bytes, pace)
  }

  /// Scans a stored element. Valid until the next call.
  mutating func scan(_ text: UnsafeRawBufferPointer) throws(JSONError) -> JSONView { try scanner.scan(text) }
}

/// The elements of an array of a request as compact texts. Valid as long as the bytes of the request and this buffer.
///
/// Elements with white space are copied without it into one document, so that any two can be compared as texts.
final class ElementBuffer {
  private var bytes = ByteBuffer()
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private(set) var views: [JSONView]

  init(compacting array: JSONView, _ pace: Pace) {
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
