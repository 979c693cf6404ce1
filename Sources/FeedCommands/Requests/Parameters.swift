import FeedClient
import FeedJSON

/// Writes the JSON object of a request's parameters, member after member.
struct Parameters: ~Copyable {
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

  /// Adds a value whose JSON text is there already.
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

  /// The whole object.
  consuming func finish() -> String {
    buffer.append(UInt8(ascii: "}"))
    return String(decoding: buffer.bytes, as: UTF8.self)
  }
}

extension Invocation {
  /// Asks one request whose parameters are this JSON text; see ``request(_:params:show:)``.
  func request(
    _ method: String, _ params: String?, show: (JSONView, Console) -> Void
  ) throws(Failure) -> ExitStatus {
    try request(method, params: { $0.append(string: params ?? "{}") }, show: show)
  }
}
