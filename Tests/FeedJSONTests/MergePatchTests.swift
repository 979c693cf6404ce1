import FeedJSON
import TestSupport
import Testing

@Suite("Merge patches")
struct MergePatchTests {
  private func merge(_ patch: String, into target: String?) -> String? {
    var patches = JSONScanner()
    var targets = JSONScanner()
    var out = ByteBuffer()
    let isRead = Array(patch.utf8).withUnsafeBytes { patch in
      Array((target ?? "null").utf8).withUnsafeBytes { bytes in
        guard let patch = try? patches.scan(patch), let view = try? targets.scan(bytes) else { return false }
        MergePatch.apply(patch, to: target == nil ? nil : view, into: &out)
        return true
      }
    }
    return isRead ? String(decoding: out.bytes, as: UTF8.self) : nil
  }

  @Test(
    "the examples of RFC 7396, appendix A",
    arguments: [
      (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
      (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
      (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
      (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
      (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#), (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
      (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"), (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
      (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#), ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
      ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ] as [(String, String, String)])
  func examples(target: String, patch: String, result: String) {
    expectEqual(merge(patch, into: target), result)
  }

  @Test(
    "members keep their order and untouched members keep their text",
    arguments: [
      (
        #"{"a":1.00,"b":{"x":1e2,"y":"\u0041"},"c":[ 1 ]}"#, #"{ "b" : { "x" : 2 } }"#,
        #"{"a":1.00,"b":{"x":2,"y":"\u0041"},"c":[1]}"#
      ),
      (#"{"\u0061":1,"b":2}"#, #"{"a":3,"z":4,"y":5}"#, #"{"\u0061":3,"b":2,"z":4,"y":5}"#),
      (#"{"a":1,"b":2,"a":3}"#, #"{"a":{"n":4}}"#, #"{"b":2,"a":{"n":4}}"#),
      (#"{"a":1,"b":2,"a":3}"#, #"{"a":null}"#, #"{"b":2}"#),
      (#"{"a":1,"b":2,"a":3}"#, #"{"b":0}"#, #"{"a":1,"b":0,"a":3}"#),
      (#"{"a":{"k":1}}"#, #"{"a":1,"a":{"l":2}}"#, #"{"a":{"k":1,"l":2}}"#),
    ] as [(String, String, String)])
  func texts(target: String, patch: String, result: String) {
    expectEqual(merge(patch, into: target), result)
  }

  @Test("without a target, nulls of the patch are removed")
  func withoutTarget() {
    expectEqual(merge(#"{"a":null,"b":{"c":null,"d":[null]}}"#, into: nil), #"{"b":{"d":[null]}}"#)
    expectEqual(merge("7", into: nil), "7")
  }

  @Test("every 64 members of a patch are a step, wherever they go", arguments: ["{}", #"{"m7":0}"#, "null"])
  func steps(target: String) {
    var members = (0..<6400).map { #""m\#($0)":\#($0)"# }
    let patch = "{\(members.joined(separator: ","))}"
    var patches = JSONScanner()
    var targets = JSONScanner()
    var out = ByteBuffer()
    var steps = 0
    Array(patch.utf8).withUnsafeBytes { patch in
      Array(target.utf8).withUnsafeBytes { target in
        guard let patch = try? patches.scan(patch), let target = try? targets.scan(target) else { return }
        MergePatch.apply(patch, to: target, into: &out) { steps += 1 }
      }
    }
    // Half of them while the patch is read, and half while it is written.
    expectEqual(steps, 200)
    if target == #"{"m7":0}"# { members.insert(members.remove(at: 7), at: 0) }
    expectEqual(String(decoding: out.bytes, as: UTF8.self), "{\(members.joined(separator: ","))}")
  }

  @Test("random patches give what the algorithm of RFC 7396 gives")
  func random() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<2000 {
      let target = Naive.random(depth: 3, &random)
      let patch = Naive.random(depth: 3, &random)
      expectEqual(merge(patch.text, into: target.text), target.merged(with: patch).text, "seed \(random.seed)")
    }
  }
}

/// JSON as a tree, merged as the pseudocode of RFC 7396, section 2, says.
private indirect enum Naive {
  case scalar(String)
  case object([(name: String, value: Naive)])

  static func random(depth: Int, _ random: inout SeededRandom) -> Naive {
    guard depth > 0, Int.random(in: 0..<4, using: &random) > 0 else {
      return .scalar(["null", "1.0", "\"x\"", "[null,{\"a\":null}]", "true"][Int.random(in: 0..<5, using: &random)])
    }
    let names = ["a", "b", "c", "d"].shuffled(using: &random).prefix(Int.random(in: 0...4, using: &random))
    return .object(names.map { ($0, Naive.random(depth: depth - 1, &random)) })
  }

  var text: String {
    switch self {
    case .scalar(let text): text
    case .object(let members): "{" + members.map { "\"\($0.name)\":\($0.value.text)" }.joined(separator: ",") + "}"
    }
  }

  func merged(with patch: Naive) -> Naive {
    guard case .object(let changes) = patch else { return patch }
    var members: [(name: String, value: Naive)] = []
    if case .object(let mine) = self { members = mine }
    for (name, value) in changes {
      let place = members.firstIndex { $0.name == name }
      if case .scalar("null") = value {
        if let place { members.remove(at: place) }
      } else if let place {
        members[place].value = members[place].value.merged(with: value)
      } else {
        members.append((name, Naive.object([]).merged(with: value)))
      }
    }
    return .object(members)
  }
}
