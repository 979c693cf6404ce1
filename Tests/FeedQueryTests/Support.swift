import FeedJSON
import TestSupport

@testable import FeedQuery

/// The texts of the nodes that a path selects, in order.
func nodes(_ path: String, in json: String) throws -> [String] {
  let path = try JSONPath(parsing: path)
  return try withJSON(json) { root in nodes(path, in: root) }
}

func nodes(_ path: JSONPath, in root: JSONView) -> [String] {
  var result: [String] = []
  path.evaluate(root) { result.append(String(decoding: $0.text, as: UTF8.self)) }
  return result
}

func accepts(_ filter: String, _ element: String) throws -> Bool {
  let filter = try Filter(parsing: filter)
  return try withJSON(element) { filter.accepts($0) }
}

/// The error of a path; nil if it is valid.
func refusal(_ path: String) -> QueryError? {
  do {
    _ = try JSONPath(parsing: path)
    return nil
  } catch {
    return error
  }
}

extension IRegexp {
  /// Whether the expression matches all of `text`.
  func matches(whole text: String) -> Bool {
    var text = text
    return text.withUTF8 { matches(whole: UnsafeRawBufferPointer($0)) }
  }

  /// Whether the expression matches some part of `text`.
  func searches(in text: String) -> Bool {
    var text = text
    return text.withUTF8 { searches(in: UnsafeRawBufferPointer($0)) }
  }
}

/// Random JSON values, and random paths that are likely to select nodes of them.
struct RandomTexts {
  var random: SeededRandom

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int(random.next() % UInt64(choices.count))]
  }

  mutating func number(below limit: Int) -> Int { Int(random.next() % UInt64(limit)) }

  mutating func json(depth: Int = 4) -> String {
    switch number(below: depth > 0 ? 10 : 6) {
    case 0: return pick(["null", "true", "false"])
    case 1, 2: return pick(["0", "1", "2", "-1", "1.5", "10", "1e1", "-0", "20E-1", "0.5"])
    case 3, 4, 5: return scalarString()
    case 6, 7:
      let count = number(below: 5)
      return "[" + (0..<count).map { _ in json(depth: depth - 1) }.joined(separator: pick([",", ", "])) + "]"
    default:
      // Sometimes more members than are compared pair by pair, and duplicate names.
      let count = number(below: 12) == 0 ? 20 : number(below: 5)
      return "{" + (0..<count).map { _ in name() + ":" + json(depth: depth - 1) }.joined(separator: ",") + "}"
    }
  }

  private mutating func name() -> String {
    pick([#""a""#, #""b""#, #""c""#, #""\u0061""#, #""é""#, #""\u00e9""#, #""x\"y""#, "\"n\(number(below: 30))\""])
  }

  private mutating func scalarString() -> String {
    pick([
      #""""#, #""a""#, #""ab""#, #""b""#, #""\u0061b""#, #""é""#, #""😀""#, #""\ud83d\ude00""#, #""a\nb""#, #""aab""#,
    ])
  }

  mutating func path(depth: Int = 3) -> String { "$" + segments(depth: depth, least: 0) }

  private mutating func segments(depth: Int, least: Int) -> String {
    (0..<(least + number(below: 4))).map { _ in segment(depth: depth) }.joined()
  }

  private mutating func segment(depth: Int) -> String {
    switch number(below: 8) {
    case 0, 1: return pick([".a", ".b", ".c", ".é", "['a']", "['x\\\"y']".replacing("\\\"", with: "\"")])
    case 2: return pick([".*", "[*]"])
    case 3: return pick(["..a", "..*", "..[0]", "..b"])
    default:
      let count = number(below: 4) == 0 ? 2 + number(below: 2) : 1
      let selectors = (0..<count).map { _ in selector(depth: depth) }.joined(separator: pick([",", " , "]))
      return (number(below: 6) == 0 ? ".." : "") + "[\(selectors)]"
    }
  }

  private mutating func selector(depth: Int) -> String {
    switch number(below: depth > 0 ? 8 : 5) {
    case 0: return pick(["'a'", "\"b\"", "'\\u0063'", "'n3'"])
    case 1: return pick(["0", "1", "2", "-1", "-2", "9"])
    case 2: return "*"
    case 3, 4:
      let bounds = (0..<3).map { _ in pick(["", "0", "1", "2", "3", "-1", "-2", "-4"]) }
      return bounds.joined(separator: ":")
    default: return "?" + condition(depth: depth - 1)
    }
  }

  mutating func condition(depth: Int = 2) -> String {
    switch number(below: 9) {
    case 0: return condition(inner: depth) + " && " + condition(inner: depth)
    case 1: return condition(inner: depth) + "||" + condition(inner: depth)
    case 2: return "!(" + condition(inner: depth) + ")"
    case 3: return pick(["", "!"]) + query(depth: depth)
    case 4:
      let pattern = pick(["'a.*'", "'b'", "'[ab]+'", "'.'", "@.a", "'('", "1"])
      return pick(["match", "search"]) + "(\(operand(depth: depth)), \(pattern))"
    default:
      return operand(depth: depth) + pick(["==", "!=", "<", "<=", ">", ">="]) + operand(depth: depth)
    }
  }

  private mutating func condition(inner depth: Int) -> String {
    depth > 0 ? condition(depth: depth - 1) : "@.a"
  }

  private mutating func query(depth: Int) -> String { pick(["@", "@", "$"]) + segments(depth: depth - 1, least: 0) }

  private mutating func operand(depth: Int) -> String {
    switch number(below: 7) {
    case 0: return pick(["1", "0", "-1", "1.5", "1e1", "'a'", "\"ab\"", "'😀'", "null", "true", "false"])
    case 1: return "length(\(pick(["@", "@.a", "@[0]", "'ab'", "value(@..a)"])))"
    case 2: return "\(pick(["count", "value"]))(\(query(depth: depth)))"
    default: return pick(["@", "@", "$"]) + pick(["", ".a", ".b", "[0]", ".a.b", "[-1]", "['c'][1]", ".a[0]"])
    }
  }
}
