import FeedJSON

/// A small JSON object, copied out of its text: what JetStream answers, and what members tell each other.
struct JSONObject {
  private indirect enum Value {
    case text(String)
    case number(Int)
    case bool(Bool)
    case object(JSONObject)
    case list([JSONObject])
    case numbers([Int])
  }

  private var values: [String: Value] = [:]

  /// Returns nil if the text is no JSON object.
  init?(_ text: UnsafeRawBufferPointer) {
    var scanner = JSONScanner(maxDepth: 32)
    guard let view = try? scanner.scan(text), view.kind == .object else { return nil }
    self.init(view)
  }

  init?(_ text: String) {
    var text = text
    guard let object = text.withUTF8({ JSONObject(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = object
  }

  private init(_ view: JSONView) {
    for member in view.members {
      guard let key = member.key.string else { continue }
      switch member.value.kind {
      case .string: values[key] = member.value.string.map { .text($0) }
      case .number: values[key] = member.value.int.map { .number($0) }
      case .object: values[key] = .object(JSONObject(member.value))
      case .array:
        let numbers = member.value.elements.compactMap { $0.kind == .number ? $0.int : nil }
        values[key] =
          numbers.isEmpty
          ? .list(member.value.elements.filter { $0.kind == .object }.map { JSONObject($0) }) : .numbers(numbers)
      default: values[key] = member.value.bool.map { .bool($0) }
      }
    }
  }

  func string(_ name: String) -> String? { if case .text(let text) = values[name] { text } else { nil } }
  func int(_ name: String) -> Int? { if case .number(let number) = values[name] { number } else { nil } }
  func unsigned(_ name: String) -> UInt64? { int(name).flatMap { UInt64(exactly: $0) } }
  func bool(_ name: String) -> Bool? { if case .bool(let bool) = values[name] { bool } else { nil } }
  func object(_ name: String) -> JSONObject? { if case .object(let object) = values[name] { object } else { nil } }
  func objects(_ name: String) -> [JSONObject] { if case .list(let list) = values[name] { list } else { [] } }

  /// The elements of an array that are numbers.
  func integers(_ name: String) -> [Int] { if case .numbers(let numbers) = values[name] { numbers } else { [] } }

  /// The members of an object that are numbers.
  func numbers(_ name: String) -> [String: Int] { object(name)?.allNumbers ?? [:] }

  var allNumbers: [String: Int] { values.compactMapValues { if case .number(let number) = $0 { number } else { nil } } }
}
