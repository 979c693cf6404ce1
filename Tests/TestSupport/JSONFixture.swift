import FeedJSON

/// Scans a text that a test wrote and lends its view to `body`.
package func withJSON<Result>(_ text: String, _ body: (JSONView) throws -> Result) throws -> Result {
  let bytes = Array(text.utf8)
  var scanner = JSONScanner()
  return try bytes.withUnsafeBytes { try body(try scanner.scan($0)) }
}

/// The UTF-8 of a text, as the mirror keeps elements.
package func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// The text of UTF-8.
package func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
