import FeedJSON

/// From the JSON of a request to a stored version.
extension CollectionState {
  /// The element without white space outside strings; the same view when it has none.
  func compact(_ given: JSONView, index place: Int) throws(FeedError) -> JSONView {
    var element = given
    if !given.isCompact {
      compacted.removeAll(keepingCapacity: true)
      compacted.append(compact: given)
      do {
        element = try scanner.scan(compacted.bytes)
      } catch {
        throw .internalError(reason: "an element did not survive the removal of white space: \(error.message)")
      }
    }
    guard element.text.count <= limits.elementRoom else {
      throw .limitExceeded(
        limit: "maxElementBytes", value: limits.elementRoom,
        reason: "element \(place) has \(element.text.count) bytes; push a smaller one, or start feedd with a larger --max-element-bytes")
    }
    return element
  }

  /// A new version of an element whose identity stands in `identity`.
  func makeText(_ element: JSONView, known: UInt32?) throws(FeedError) -> ElementText {
    if known == nil && elements.count >= limits.maxElements {
      throw .limitExceeded(
        limit: "maxElements", value: limits.maxElements,
        reason: "\(feed) is full; delete elements, give it \"retain\", or start feedd with a larger --max-elements")
    }
    if elements.bytes &+ element.text.count > limits.maxBytes {
      throw .limitExceeded(
        limit: "maxBytes", value: limits.maxBytes,
        reason: "\(feed) holds \(elements.bytes) bytes; delete elements, or start feedd with a larger --max-bytes")
    }
    keys.removeAll(keepingCapacity: true)
    for order in orders { order.appendKey(of: element, to: &keys) }
    guard
      let text = ElementText(
        identity: identity.bytes, keys: keys.bytes, text: element.text, type: typeRange(in: element))
    else { throw .internalError(reason: "no memory for an element of \(element.text.count) bytes") }
    return text
  }

  /// A type longer than this many bytes names nothing; the element has none.
  private static let longestType = 1024

  private func typeRange(in element: JSONView) -> Range<Int> {
    guard let type = definition.type?.resolve(element), type.kind == .string, type.text.count <= Self.longestType else {
      return 0..<0
    }
    let start = type.byteOffset - element.byteOffset
    return start..<(start + type.text.count)
  }
}
