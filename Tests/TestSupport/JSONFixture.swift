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

/// The UTF-8 of a text, as the mirror keeps elements.
package func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// The text of UTF-8.
package func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
