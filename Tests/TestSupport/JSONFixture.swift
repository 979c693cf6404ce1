import FeedJSON

/// Scans `text`, which must be valid JSON, and gives its value to `body`.
package func withJSON<Result>(_ text: String, _ body: (JSONView) throws -> Result) throws -> Result {
  try withJSON(Array(text.utf8), body)
}

/// Scans `bytes`, which must be valid JSON, and gives their value to `body`.
package func withJSON<Result>(_ bytes: [UInt8], _ body: (JSONView) throws -> Result) throws -> Result {
  var scanner = JSONScanner()
  return try bytes.withUnsafeBytes { try body(try scanner.scan($0)) }
}

/// Whether two JSON texts are equal as values: numbers by value, strings by code points, objects regardless of the order of
/// their members.
package func isSameJSON(_ first: String, _ second: String) throws -> Bool {
  try withJSON(first) { first in try withJSON(second) { first.equals($0) } }
}

/// The UTF-8 of a text, in which the mirror stores elements.
package func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// The text of UTF-8.
package func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
