import FeedJSON
import TestSupport
import Testing

/// Why the bytes are refused; nil when they are accepted. They are copied to a block of exactly their size, so that a
/// look past either end is an error where memory is checked.
func scanFailure(_ bytes: [UInt8], maxDepth: Int = 512) -> JSONError? {
  var scanner = JSONScanner(maxDepth: maxDepth)
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  do throws(JSONError) {
    _ = try scanner.scan(UnsafeRawBufferPointer(copy))
    return nil
  } catch {
    return error
  }
}

/// Why the text is refused; nil when it is accepted.
func scanFailure(_ text: String) -> JSONError? { scanFailure(Array(text.utf8)) }

/// The text without white space outside strings.
func compacted(_ bytes: [UInt8]) throws -> [UInt8] {
  try withJSON(bytes) { view in
    var buffer = ByteBuffer()
    buffer.append(compact: view)
    #expect(view.compactLength == buffer.count)
    return Array(buffer.bytes)
  }
}

/// The compact text has to be a fixed point, equal to the text it was made of and not longer.
func expectRoundTrip(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
  let compact = try compacted(bytes)
  #expect(compact.count <= bytes.count, sourceLocation: sourceLocation)
  try withJSON(compact) { view in
    #expect(view.isCompact, sourceLocation: sourceLocation)
    #expect(Array(view.text) == compact, sourceLocation: sourceLocation)
    try withJSON(bytes) { #expect($0.equals(view) && view.equals($0), sourceLocation: sourceLocation) }
  }
}

extension ByteBuffer {
  /// What was written, as an array.
  var array: [UInt8] { Array(bytes) }
  /// What was written, as a string.
  var string: String { String(decoding: bytes, as: UTF8.self) }
}
