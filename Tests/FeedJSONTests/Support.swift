import FeedJSON
import TestSupport
import Testing

/// The error of the bytes; nil if they are valid. They are copied to a block of exactly their size, so that a sanitizer
/// detects reads past either end.
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

/// The error of the text; nil if it is valid.
func scanFailure(_ text: String) -> JSONError? { scanFailure(Array(text.utf8)) }

/// The text without white space between tokens.
func compacted(_ bytes: [UInt8]) throws -> [UInt8] {
  try withJSON(bytes) { view in
    var buffer = ByteBuffer()
    buffer.append(compact: view)
    return Array(buffer.bytes)
  }
}

/// Checks that the compact text is equal to the original as a value, not longer, and unchanged by compacting it again.
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
  /// The contents as an array.
  var array: [UInt8] { Array(bytes) }
  /// The contents as a string.
  var string: String { String(decoding: bytes, as: UTF8.self) }
}
