import FeedChange
import FeedJSON

/// From the JSON of a request to a stored version.
extension RowStore {
  /// A type longer than this many bytes names nothing; the element has none. Next to its element it must fit a frame.
  private var longestType: Int { min(1024, limits.maxFrame / 8) }

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
        reason:
          "element \(place) has \(element.text.count) bytes; push a smaller one, or start feedd with a larger --max-element-bytes"
      )
    }
    return element
  }

  /// Refuses an element for which there is no room. `isNew`: it does not take the place of another version.
  func checkRoom(for element: JSONView, isNew: Bool) throws(FeedError) {
    if isNew && elements.count >= limits.maxElements {
      throw .limitExceeded(
        limit: "maxElements", value: limits.maxElements,
        reason: "\(feed) is full; take elements away, or start feedd with a larger --max-elements")
    }
    if elements.bytes &+ element.text.count > limits.maxBytes {
      throw .limitExceeded(
        limit: "maxBytes", value: limits.maxBytes,
        reason: "\(feed) holds \(elements.bytes) bytes; take elements away, or start feedd with a larger --max-bytes")
    }
  }

  /// A new version of a compact element.
  func makeText(
    _ element: JSONView, identity: UnsafeRawBufferPointer, keys: UnsafeRawBufferPointer
  ) throws(FeedError) -> ElementText {
    guard let text = ElementText(identity: identity, keys: keys, text: element.text, type: typeRange(in: element))
    else { throw .internalError(reason: "there is no memory for an element of \(element.text.count) bytes") }
    return text
  }

  /// Where in the element's text its type stands.
  private func typeRange(in element: JSONView) -> Range<Int> {
    guard let type = type?.resolve(element), type.kind == .string, type.text.count <= longestType else {
      return 0..<0
    }
    let start = type.byteOffset - element.byteOffset
    return start..<(start + type.text.count)
  }
}
