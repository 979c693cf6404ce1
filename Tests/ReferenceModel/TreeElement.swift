/// An element as the random trees push it: few values, so that texts repeat and rows compete.
struct TreeElement: Equatable {
  /// Absent where an element has no identity.
  var id: Int?
  /// What filters judge and bins sort by.
  var v: Int?
  /// The type by `$.k`.
  var k: String?
  /// Another number to sort by; in some definitions the type, which it is not, being no string.
  var n: Int
  /// When it expires where the definition says so, in milliseconds since 1970.
  var x: Int?

  /// The compact JSON that is pushed and must come back.
  var text: String {
    var members: [String] = []
    if let id { members.append("\"id\":\(id)") }
    if let v { members.append("\"v\":\(v)") }
    if let k { members.append("\"k\":\"\(k)\"") }
    members.append("\"n\":\(n)")
    if let x { members.append("\"x\":\(Self.time(x))") }
    return "{" + members.joined(separator: ",") + "}"
  }

  /// A time as JSON: whole seconds as a number, others as RFC 3339 text.
  private static func time(_ milliseconds: Int) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000)
    if rest == 0 { return "\(seconds)" }
    func digits(_ value: Int, _ count: Int) -> String { String("\(value + 1000)".suffix(count)) }
    let time = "\(digits(seconds / 3600 % 24, 2)):\(digits(seconds / 60 % 60, 2)):\(digits(seconds % 60, 2))"
    return "\"1970-01-01T\(time).\(digits(rest, 3))Z\""
  }

  /// The JSON text of the type that a path gives; `null` without one.
  func type(at path: String?) -> String {
    path == "$.k" ? k.map { "\"\($0)\"" } ?? "null" : "null"
  }

  init(id: Int?, v: Int?, k: String?, n: Int) { (self.id, self.v, self.k, self.n) = (id, v, k, n) }

  func number(_ member: String) -> Int? { member == "v" ? v : n }
}
