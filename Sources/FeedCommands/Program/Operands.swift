import FeedClient
import FeedJSON

/// The meaning of operands.
enum Operands {
  /// Deeper than any daemon accepts.
  private static let maxDepth = 10_000

  /// The JSON of an identity: a JSON number or string as it is, any other word as a string.
  static func id(_ word: String) -> String { isJSON(word, of: [.number, .string]) ? word : quoted(word) }

  /// The JSON of a child: an index as it is, any other word as a name.
  static func child(_ word: String) -> String { Int(word).map { "\($0)" } ?? quoted(word) }

  /// The JSON string of a text.
  static func quoted(_ text: String) -> String {
    var buffer = ByteBuffer()
    buffer.appendJSONString(text)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// Scans a text and passes its view to `body`.
  /// - Throws: a usage error when it is not JSON.
  static func withView<Result>(of text: String, _ body: (JSONView) -> Result) throws(Failure) -> Result {
    var text = text
    let result = text.withUTF8 { bytes -> Result? in
      var scanner = JSONScanner(maxDepth: maxDepth)
      return (try? scanner.scan(UnsafeRawBufferPointer(bytes))).map(body)
    }
    guard let result else { throw .usage("'\(text)' is not JSON") }
    return result
  }

  /// What is wrong with a text that should be JSON; nil when it is JSON.
  static func flaw(_ text: String) -> String? {
    var text = text
    return text.withUTF8 { flaw(UnsafeRawBufferPointer($0)) }
  }

  /// What is wrong with bytes that should be a JSON text; nil when they are one.
  static func flaw(_ bytes: UnsafeRawBufferPointer) -> String? {
    var scanner = JSONScanner(maxDepth: maxDepth)
    do throws(JSONError) {
      _ = try scanner.scan(bytes)
      return nil
    } catch {
      return "\(error.message) at byte \(error.offset)"
    }
  }

  /// A list of row numbers such as `0,3,5`; nil when it is not one.
  static func rows(_ word: String) -> [Int]? {
    let parts = word.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    let rows = parts.compactMap { $0 }
    return rows.count == parts.count && rows.allSatisfy { $0 >= 0 } ? rows : nil
  }

  /// A JSON object's text with one more member at its end; of members of one name the last one counts.
  static func adding(_ member: String, to object: String) -> String {
    guard let end = object.lastIndex(of: "}") else { return object }
    let isEmpty = object[..<end].allSatisfy { $0.isWhitespace || $0 == "{" }
    return object[..<end] + (isEmpty ? "" : ",") + member + "}"
  }

  private static func isJSON(_ word: String, of kinds: [JSONKind]) -> Bool {
    var word = word
    return word.withUTF8 { bytes in
      var scanner = JSONScanner(maxDepth: 1)
      guard let view = try? scanner.scan(UnsafeRawBufferPointer(bytes)) else { return false }
      return kinds.contains(view.kind) && view.text.count == bytes.count
    }
  }
}

/// Writes the JSON object of a request's parameters, member by member.
///
///     var params = ParameterWriter()
///     params.add("feed", "inbox")
///     params.finish()  // {"feed":"inbox"}
struct ParameterWriter: ~Copyable {
  private var buffer = ByteBuffer()
  private var isEmpty = true

  init() { buffer.append(UInt8(ascii: "{")) }

  private mutating func begin(_ name: String) {
    if !isEmpty { buffer.append(UInt8(ascii: ",")) }
    isEmpty = false
    buffer.appendJSONString(name)
    buffer.append(UInt8(ascii: ":"))
  }

  mutating func add(_ name: String, _ text: String) {
    begin(name)
    buffer.appendJSONString(text)
  }

  mutating func add(_ name: String, _ number: Int) {
    begin(name)
    buffer.append(integer: number)
  }

  mutating func add(_ name: String, _ flag: Bool) {
    begin(name)
    buffer.append(flag ? "true" : "false")
  }

  /// Adds a value given as JSON text.
  mutating func add(_ name: String, json: String) {
    begin(name)
    buffer.append(string: json)
  }

  /// Adds a list of JSON texts.
  mutating func add(_ name: String, json texts: [String]) {
    begin(name)
    buffer.append(UInt8(ascii: "["))
    for (place, text) in texts.enumerated() {
      if place > 0 { buffer.append(UInt8(ascii: ",")) }
      buffer.append(string: text)
    }
    buffer.append(UInt8(ascii: "]"))
  }

  /// Adds a list of numbers.
  mutating func add(_ name: String, _ numbers: [Int]) { add(name, json: numbers.map { "\($0)" }) }

  /// Returns the whole object.
  consuming func finish() -> String {
    buffer.append(UInt8(ascii: "}"))
    return String(decoding: buffer.bytes, as: UTF8.self)
  }
}
