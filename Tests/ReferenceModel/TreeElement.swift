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

  /// The compact JSON that is pushed and must come back.
  var text: String {
    var members: [String] = []
    if let id { members.append("\"id\":\(id)") }
    if let v { members.append("\"v\":\(v)") }
    if let k { members.append("\"k\":\"\(k)\"") }
    members.append("\"n\":\(n)")
    return "{" + members.joined(separator: ",") + "}"
  }

  /// The JSON text of the type that a path gives; `null` without one.
  func type(at path: String?) -> String {
    path == "$.k" ? k.map { "\"\($0)\"" } ?? "null" : "null"
  }

  /// The element of a row.
  init?(text: String) {
    guard let value = Value(text), let n = value["n"]?.int else { return nil }
    self.init(id: value["id"]?.int, v: value["v"]?.int, k: value["k"]?.string, n: n)
  }

  init(id: Int?, v: Int?, k: String?, n: Int) { (self.id, self.v, self.k, self.n) = (id, v, k, n) }

  func number(_ member: String) -> Int? { member == "v" ? v : n }
}
