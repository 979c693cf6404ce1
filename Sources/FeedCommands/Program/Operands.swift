import FeedClient
import FeedJSON

enum Operands {
  /// The maximum depth of JSON, more than any daemon accepts.
  private static let maxDepth = 10_000

  /// Returns the JSON of an identity: a JSON number or string unchanged, any other word as a string.
  static func id(_ word: String) -> String { isScalar(word) ? word : word.quotedAsJSON }

  static func isScalar(_ word: String) -> Bool {
    let length = word.utf8.count
    let isWhole = try? withView(of: word) { ($0.kind == .number || $0.kind == .string) && $0.text.count == length }
    return isWhole ?? false
  }

  /// Returns the shortest word that ``id(_:)`` converts to an identity.
  static func word(ofID id: JSONView) -> String {
    let source = String(decoding: id.text, as: UTF8.self)
    guard let text = id.string, !text.isEmpty, !text.hasPrefix("-"), self.id(text) == source else { return source }
    return text
  }

  /// Returns the JSON of a child: an index unchanged, any other word as a name.
  static func child(_ word: String) -> String { Int(word).map { "\($0)" } ?? word.quotedAsJSON }

  /// Whether a text can only be a JSON object, if it is JSON.
  static func beginsObject(_ text: String) -> Bool {
    // Of bytes: CR and LF together are one character.
    text.utf8.first { !" \t\n\r".utf8.contains($0) } == UInt8(ascii: "{")
  }

  /// Scans a text and passes its view to `body`.
  /// - Throws: a usage error if the text is not JSON.
  static func withView<Result>(of text: String, _ body: (JSONView) -> Result) throws(Failure) -> Result {
    var text = text
    let result = text.withUTF8 { bytes -> Result? in
      var scanner = JSONScanner(maxDepth: maxDepth)
      return (try? scanner.scan(UnsafeRawBufferPointer(bytes))).map(body)
    }
    guard let result else { throw .usage("'\(text)' is not JSON") }
    return result
  }

  /// Returns the error in a text that should be JSON; nil if it is valid.
  static func flaw(_ text: String) -> String? {
    var text = text
    return text.withUTF8 { text in
      let bytes = UnsafeRawBufferPointer(text)
      var scanner = JSONScanner(maxDepth: maxDepth)
      do throws(JSONError) {
        _ = try scanner.scan(bytes)
        return nil
      } catch {
        return "\(error.message(in: bytes)) at byte \(error.offset)"
      }
    }
  }

  static func isDeeper(_ text: String, than levels: Int) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      var scanner = JSONScanner(maxDepth: levels)
      return (try? scanner.scan(UnsafeRawBufferPointer(bytes))) == nil
    }
  }

  /// Parses a list of row numbers such as `0,3,5`; nil if it is invalid.
  static func rows(_ word: String) -> [Int]? {
    let parts = word.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    let rows = parts.compactMap { $0 }
    return rows.count == parts.count && rows.allSatisfy { $0 >= 0 } ? rows : nil
  }

  /// Returns a JSON object with one more member at its end. It overrides an earlier member with the same name.
  static func adding(_ member: String, to object: String) -> String {
    guard let end = object.lastIndex(of: "}") else { return object }
    let isEmpty = object[..<end].allSatisfy { $0.isWhitespace || $0 == "{" }
    return object[..<end] + (isEmpty ? "" : ",") + member + "}"
  }
}

extension [UInt8] {
  /// Passes the value of a JSON text to `read`. Returns nil if the text is not JSON.
  func readJSON<Result>(_ read: (JSONView) -> Result?) -> Result? {
    withUnsafeBytes { bytes in
      // Deeper than any message of a daemon.
      var scanner = JSONScanner(maxDepth: 10_200)
      return (try? scanner.scan(bytes)).flatMap(read)
    }
  }
}

/// Writes the JSON object of a request's parameters, member by member.
///
///     var params = ParameterWriter(feed: "inbox")
///     params.add("row", 3)
///     params.finish()  // {"feed":"inbox","row":3}
struct ParameterWriter: ~Copyable {
  private var buffer = ByteBuffer()
  private var isEmpty = true

  init() { buffer.append(UInt8(ascii: "{")) }

  /// Begins with the member `feed`.
  init(feed: String) {
    self.init()
    add("feed", feed)
  }

  private mutating func begin(_ name: String) {
    if !isEmpty { buffer.append(UInt8(ascii: ",")) }
    isEmpty = false
    buffer.appendJSONString(name)
    buffer.append(UInt8(ascii: ":"))
  }

  /// Begins the object of a section with its name, its key if it is one by value, and the number of its rows.
  init(_ section: SectionSummary) {
    self.init()
    add("name", section.name)
    if let key = section.key { add("key", json: String(decoding: key, as: UTF8.self)) }
    add("count", section.count)
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

  /// Adds a value that is JSON text.
  mutating func add(_ name: String, json: String) {
    begin(name)
    buffer.append(string: json)
  }

  /// Adds a list of sections.
  mutating func add(_ name: String, _ sections: [SectionSummary]) {
    add(name, json: sections.map { ParameterWriter($0).finish() })
  }

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

  /// Returns the complete object.
  consuming func finish() -> String {
    buffer.append(UInt8(ascii: "}"))
    return String(decoding: buffer.bytes, as: UTF8.self)
  }
}

/// A path to one value inside another: names of members, and indices. The client evaluates only such paths; the daemon
/// evaluates full JSONPath.
struct MemberPath: Equatable, Sendable {
  enum Step: Equatable, Sendable {
    case name(String)
    /// Counted from 0; a negative index counts from the end.
    case index(Int)
  }

  var steps: [Step]

  /// The names of the steps; nil if one is an index.
  var names: [String]? {
    var names: [String] = []
    for step in steps {
      guard case .name(let name) = step else { return nil }
      names.append(name)
    }
    return names
  }

  /// Returns the value at the path; nil if there is none.
  func resolve(_ root: JSONView) -> JSONView? {
    var view = root
    for step in steps {
      let next: JSONView?
      switch step {
      case .name(let name): next = view.member(named: name)
      case .index(let index):
        guard view.kind == .array else { return nil }
        next = view.element(at: index < 0 ? view.count + index : index)
      }
      guard let next else { return nil }
      view = next
    }
    return view
  }
}

extension MemberPath {
  /// Parses a singular JSONPath of plain steps: `$`, then `.name`, `['name']`, `["name"]` or `[0]`. Returns nil for
  /// anything else, including escapes in a name.
  init?(jsonPath text: String) {
    guard text.first == "$" else { return nil }
    var rest = text.dropFirst()
    steps = []
    while let first = rest.first {
      rest = rest.dropFirst()
      if first == "." {
        let name = rest.prefix { Self.isNameCharacter($0) }
        guard let initial = name.first, !initial.isNumber else { return nil }
        steps.append(.name(String(name)))
        rest = rest.dropFirst(name.count)
      } else if first == "[", let end = rest.firstIndex(of: "]"), let step = Self.bracketed(rest[..<end]) {
        steps.append(step)
        rest = rest[rest.index(after: end)...]
      } else {
        return nil
      }
    }
  }

  /// Parses names and indices separated by dots, such as `user.name` or `tags.0`. Returns nil if a part is empty.
  init?(dotted text: some StringProtocol) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty }) else { return nil }
    steps = parts.map { part in Int(part).map { .index($0) } ?? .name(String(part)) }
  }

  private static func isNameCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_" || !character.isASCII
  }

  private static func bracketed(_ text: Substring) -> Step? {
    if let index = Int(text) { return .index(index) }
    guard text.count >= 2, let quote = text.first, quote == "'" || quote == "\"", text.last == quote else { return nil }
    let name = text.dropFirst().dropLast()
    return name.contains("\\") || name.contains(quote) ? nil : .name(String(name))
  }
}
