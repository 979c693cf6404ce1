import TestSupport
import Testing

@testable import FeedQuery

struct RegexpReferenceTests {
  private func check(_ expression: String, on texts: [String], _ comment: Comment? = nil) throws {
    var ranges = 0
    let syntax = try RegexpParser.parse(expression, ranges: &ranges)
    let regexp = try IRegexp(parsing: expression)
    for text in texts {
      let reference = ReferenceRegexp(text)
      expectEqual(regexp.matches(whole: text), reference.matchesWhole(syntax), "match \(expression) \(text)")
      expectEqual(regexp.searches(in: text), reference.matchesPart(syntax), "search \(expression) \(text)")
    }
  }

  /// All words over an alphabet up to a length.
  private static func words(_ alphabet: [String], upTo length: Int) -> [String] {
    var (all, last) = ([""], [""])
    for _ in 0..<length {
      last = last.flatMap { word in alphabet.map { word + $0 } }
      all += last
    }
    return all
  }

  @Test(arguments: [
    "", "a", "ab", "a|b", "a*", "a+", "a?", "(a|b)*", "(a*)*", "(a+)+$", "^a", "a$", "^$", "$^", "a^b", "^*a", "$+",
    "(^|a)b",
    "b(a|$)", "a{2}", "a{0}", "a{0}b", "a{1,}", "a{2,3}b", "(ab){1,2}", "(a|ab)(c|bcd)?", "()", "(|a)b", "a||b",
    "(a*b*)*a",
    "[ab]", "[^a]", "[^ab]", ".", "..", ".*a.", "(a?){3}a{3}", "(a{0,2}){2}b", "((a|b)(b|$)){2}", "(a*)+b{0,0}",
    "(){5}a",
  ]) func everyShortWord(expression: String) throws {
    try check(expression, on: Self.words(["a", "b"], upTo: 5))
  }

  @Test(arguments: 0..<8 as Range<UInt64>) func randomExpressions(seed: UInt64) throws {
    var random = RandomRegexps(seed: seed)
    let texts = Self.words(["a", "é", "😀", "\n"], upTo: 2) + (0..<12).map { _ in random.text() }
    for _ in 0..<15 {
      try check(random.expression(), on: texts, "seed \(seed)")
    }
  }
}

private struct RandomRegexps {
  private var random: SeededRandom

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  private mutating func pick(_ choices: [String]) -> String { choices[Int(random.next() % UInt64(choices.count))] }

  mutating func text() -> String {
    (0..<(random.next() % 12)).map { _ in pick(["a", "b", "Z", "-", "0", "é", "中", "😀", "\n", "\r", "^", "$"]) }
      .joined()
  }

  mutating func expression(depth: Int = 3) -> String {
    (0...(random.next() % 3)).map { _ in branch(depth: depth) }.joined(separator: "|")
  }

  private mutating func branch(depth: Int) -> String {
    (0..<(random.next() % 4)).map { _ in
      atom(depth: depth) + pick(["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "{0}", "{2,3}"])
    }.joined()
  }

  private mutating func atom(depth: Int) -> String {
    if depth > 0, random.next() % 4 == 0 { return "(" + expression(depth: depth - 1) + ")" }
    return pick([
      "a", "b", "é", "😀", ".", "^", "$", "-", "\\.", "\\n", "[a-z]", "[^a-z]", "[-a]", "[b-]", "[^-^]", "[a^]", "[é-中]",
      "[^\\n😀]",
      "\\p{L}", "\\P{L}", "\\p{Lu}", "[\\p{Nd}a]", "[^\\p{L}\\n]", "\\p{S}", "\\p{Cc}", "[$]", "\\^", "[\\--0]",
    ])
  }
}

/// Matches a regular expression by computing all offsets where it can end, directly from its syntax.
struct ReferenceRegexp {
  let text: [UInt32]

  init(_ text: String) {
    self.text = text.unicodeScalars.map(\.value)
  }

  func matchesWhole(_ syntax: RegexpSyntax) -> Bool { ends(syntax, from: 0).contains(text.count) }

  func matchesPart(_ syntax: RegexpSyntax) -> Bool { (0...text.count).contains { !ends(syntax, from: $0).isEmpty } }

  private func ends(_ syntax: RegexpSyntax, from start: Int) -> Set<Int> {
    switch syntax {
    case .set(let set):
      return start < text.count && set.ranges.contains { $0.contains(text[start]) } ? [start + 1] : []
    case .start: return start == 0 ? [start] : []
    case .end: return start == text.count ? [start] : []
    case .sequence(let parts):
      return parts.reduce([start]) { starts, part in
        Set(starts.flatMap { ends(part, from: $0) })
      }
    case .alternatives(let parts):
      return Set(parts.flatMap { ends($0, from: start) })
    case .repeated(let part, let min, let max):
      var (current, all): (Set<Int>, Set<Int>) = ([start], min == 0 ? [start] : [])
      var round = 1
      while round <= max ?? .max, !current.isEmpty {
        current = Set(current.flatMap { ends(part, from: $0) })
        if round >= min {
          // Offsets that were reached before lead to no new ones.
          current.subtract(all)
          all.formUnion(current)
        }
        round += 1
      }
      return all
    }
  }
}
