import TestSupport
import Testing

@testable import FeedQuery

struct RegexpTests {
  private static let refusedExpressions: [(String, Int)] = [
    ("a)", 1), ("(", 0), ("(a", 0), ("a(b", 1), ("*", 0), ("a**", 2), ("a+?", 2), ("a{1}{2}", 4), ("?", 0), ("|*", 1),
    ("(+a)", 1),
    ("{", 0), ("a{", 2), ("a{,2}", 2), ("a{1", 3), ("a{1,", 4), ("a{x}", 2), ("a{1 }", 3), ("a{3,2}", 1), ("}", 0),
    ("]", 0),
    ("a]", 1), ("[", 0), ("[]", 0), ("[^]", 0), ("[a", 0), ("[z-a]", 1), ("[a--]", 3), ("[--a]", 2), ("[a-c-e]", 4),
    ("[[]", 1),
    ("[\\p{L}-z]", 6), ("[a-\\p{L}]", 3), ("\\", 0), ("\\d", 0), ("a\\s", 1), ("\\w", 0), ("\\$", 0), ("\\u0041", 0),
    ("\\a", 0),
    ("[\\d]", 1), ("\\p", 2), ("\\p{", 3), ("\\p{L", 4), ("\\p{}", 3), ("\\p{Cs}", 3), ("\\p{IsBasicLatin}", 3),
    ("\\p{lu}", 3),
    ("\\pL", 2), ("(?:a)", 1), ("(?i)a", 1), ("\\1", 0), ("é\\d", 2), ("a{99999999999999999999999,1}", 1),
    // Too large. The first is not an I-Regexp, which has at most one quantifier for each atom.
    ("a{1000}{1000}", 7), ("(a{100}){100}", 8), ("a{5000}", 1), ("a{0,4096}", 1), ("((a{40}){40}){40}", 13),
    ("(a|b|c){2000}", 7), ("a{1000000000000}", 1), ("(){0,1000000}", 2), ("[ab]{2000}[cd]{3000}", 0),
  ]

  @Test(arguments: refusedExpressions)
  func reportsOffsetOfError(expression: String, offset: Int) throws {
    let error = #expect(throws: QueryError.self) { try IRegexp(parsing: expression) }
    expectEqual(error?.offset, offset, "\(expression): \(String(describing: error))")
  }

  @Test(arguments: [
    "", "|", "()", "a|", "[-]", "[--]", "[-a]", "[a-]", "[^-]", "[^^]", "[a^]", "[a-z-]", "[\\]]", "[\\-]", "[.]",
    "[\\n-a]",
    "\\(\\)\\*\\+\\-\\.\\?\\[\\\\\\]\\^\\n\\r\\t\\{\\|\\}", "a{0}", "a{1,1}", "a{007}", "\u{0}", "\u{7F}",
    "\u{FFFF}\u{10FFFF}", "a,b-c/",
    "<>=!@\"'#%&:;~`_", "\\p{L}\\P{Zs}", "[\\p{L}\\p{N}-]", "$^",
  ]) func accepts(expression: String) throws {
    _ = try IRegexp(parsing: expression)
  }

  @Test func nestingOfGroupsIsBounded() throws {
    let depth = QueryLimits.regexpNesting
    let deepest = String(repeating: "(", count: depth) + "a" + String(repeating: ")", count: depth)
    try expect(IRegexp(parsing: deepest).matches(whole: "a"))
    let error = #expect(throws: QueryError.self) { try IRegexp(parsing: "(" + deepest + ")") }
    expectEqual(error?.offset, depth)
    #expect(throws: QueryError.self) { try IRegexp(parsing: String(repeating: "(", count: 500_000)) }
    #expect(throws: QueryError.self) { try IRegexp(parsing: String(repeating: "|", count: 500_000)) }
    #expect(throws: QueryError.self) { try IRegexp(parsing: String(repeating: "a", count: 2_000_000)) }
  }

  @Test("the states of all expressions together take a bounded amount of memory, and matches stay the same")
  func statesOfManyExpressionsAreBounded() throws {
    var random = SeededRandom(seed: 1)
    let texts = (0..<3).map { _ in String((0..<2000).map { _ in Bool.random(using: &random) ? "a" : "b" }) }
    let expressions = try (0..<64).map { try IRegexp(parsing: "(a|b)*a(a|b){12}c{\($0),}") }
    for text in texts {
      // The character 13 before the end decides.
      let expected = text[text.index(text.endIndex, offsetBy: -13)] == "a"
      for (number, expression) in expressions.enumerated() {
        expectEqual(expression.matches(whole: text), (expected && number == 0))
        expectEqual(expression.matches(whole: text + String(repeating: "c", count: 63)), expected)
        expect(RegexpCaches.shared.memory <= QueryLimits.regexpCaches)
      }
    }
  }

  @Test func anchorsMatchEndsOfText() throws {
    try expect(IRegexp(parsing: "^ab").searches(in: "abc"))
    try expect(!IRegexp(parsing: "^b").searches(in: "abc"))
    try expect(IRegexp(parsing: "bc$").searches(in: "abc"))
    try expect(!IRegexp(parsing: "ab$").searches(in: "abc"))
    try expect(IRegexp(parsing: "^abc$").matches(whole: "abc"))
    try expect(IRegexp(parsing: "US[$] \\^").searches(in: "5 US$ ^2"))
  }

  /// More different sets than the program looks at without hashing them.
  @Test func copiesOfARepetitionShareTheirSets() throws {
    let text = #"(\p{L}a|[^\p{L}]b|[c-k][l-z][A-K][L-Z][0-4][5-9]){20}"#
    var ranges = 0
    let program = try RegexpProgram(try RegexpParser.parse(text, ranges: &ranges))
    expectEqual(program.sets.count, 10)
    expectEqual(Set(program.sets).count, 10)
  }

  @Test func categoriesAgreeWithUnicode() throws {
    let categories = GeneralCategories.shared
    let names = [
      "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
      "Sc", "Sk", "So",
      "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn",
    ]
    let sets = try names.map { try require(categories.set($0)) }
    // The categories are a partition of all code points except surrogates. Each group is the union of its categories.
    let all = sets.reduce(0) { $0 + $1.ranges.reduce(0) { $0 + $1.count } }
    expectEqual(all, 0x110000 - 0x800)
    expectEqual(CodePointSet(union: sets.flatMap(\.ranges)), CodePointSet(union: [0xD800...0xDFFF]).complement)
    for group in ["L", "M", "N", "P", "S", "Z", "C"] {
      let parts = zip(names, sets).filter { $0.0.hasPrefix(group) }.flatMap { $0.1.ranges }
      expectEqual(categories.set(group), CodePointSet(union: parts))
    }
    expectEqual(categories.set("Lu")?.contains(0x416), true)
    expectEqual(categories.set("Ll")?.contains(0x436), true)
    expectEqual(categories.set("Nd")?.contains(0x0664), true)
    expectEqual(categories.set("So")?.contains(0x1F600), true)
    expectEqual(categories.set("Cn")?.contains(0x50000), true)
    expectEqual(categories.set("Co")?.contains(0x10FFFD), true)
  }

  @Test func unassignedPlanesAgreeWithUnicode() throws {
    let unassigned = try require(GeneralCategories.shared.set("Cn"))
    let privateUse = try require(GeneralCategories.shared.set("Co"))
    for value in UInt32(0x40000)...0x10FFFF where value < 0xE0000 || value >= 0xF0000 {
      let category = try require(Unicode.Scalar(value)).properties.generalCategory
      if category != .unassigned || !unassigned.contains(value) {
        expect(category == .privateUse && privateUse.contains(value), "U+\(hexadecimal(value))")
      }
    }
  }
}

/// The cost of matching, in units of work rather than time.
struct RegexpCostTests {
  private func work(_ matcher: RegexpMatcher, on text: String, isWhole: Bool = true) -> (result: Bool?, work: Int) {
    var (left, text) = (Int.max, text)
    let result = text.withUTF8 { matcher.matches(UnsafeRawBufferPointer($0), isWhole: isWhole, work: &left) }
    return (result, Int.max - left)
  }

  @Test(arguments: ["(a+)+$", "(a*)*b", "(a|a)*c", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}c"], [20, 100, 100_000])
  func catastrophicPatternsTakeLinearWork(expression: String, length: Int) throws {
    for isWhole in [true, false] {
      let matcher = try RegexpMatcher(parsing: expression)
      let (result, work) = work(matcher, on: String(repeating: "a", count: length) + "!", isWhole: isWhole)
      expectEqual(result, false)
      // Each transition is computed once; later characters are looked up.
      expect(work < 1_000, "\(expression) took \(work)")
    }
  }

  /// The expression needs 2^18 states, so states are discarded repeatedly. The results stay correct.
  @Test(arguments: 0..<3 as Range<UInt64>) func discardedStatesDoNotChangeResults(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let letters = (0..<10_000).map { _ in random.next() & 1 == 0 ? "a" : "b" }
    let matcher = try RegexpMatcher(parsing: "(a|b)*a(a|b){18}")
    for length in [0, 19, 9_999, 10_000] {
      let expected = length >= 19 && letters[length - 19] == "a"
      let (result, work) = work(matcher, on: letters[..<length].joined())
      expectEqual(result, expected, "seed \(seed), length \(length)")
      expect(work <= length * 20)
    }
    expectEqual(work(matcher, on: letters.joined(), isWhole: false).result, true)
  }

  @Test func stopsWhenTheWorkRunsOut() throws {
    var random = SeededRandom(seed: 1)
    var text = (0..<3_000).map { _ in random.next() & 1 == 0 ? "a" : "b" }.joined()
    let matcher = try RegexpMatcher(parsing: "(a|b)*a(a|b){300}c")
    var left = 1_000
    let result = text.withUTF8 { matcher.matches(UnsafeRawBufferPointer($0), isWhole: true, work: &left) }
    expect(result == nil && left < 0)
    // The states cached until then do not change later results.
    expectEqual(work(matcher, on: text).result, false)
  }

  @Test func tooManyClassesAreRefused() throws {
    let distinct = (0..<1_100).map { "[^" + String(Character(Unicode.Scalar(UInt32(0x4E00 + $0)) ?? "a")) + "]" }
    let error = #expect(throws: QueryError.self) { try IRegexp(parsing: distinct.joined()) }
    expectEqual(error?.message.contains("character classes"), true)
    // The ranges of a category count for each class, and for each time that a class names it.
    let one = "[" + String(repeating: #"\p{L}"#, count: 2_000) + "]"
    for text in [one, String(repeating: #"[\p{L}\p{N}]"#, count: 2_000)] {
      let error = #expect(throws: QueryError.self) { try IRegexp(parsing: text) }
      expectEqual(error?.message.contains("character classes"), true)
      // A pattern that is read from the value then matches nothing.
      let element = #"{"a":"a","b":"\#(text.replacing(#"\"#, with: #"\\"#))"}"#
      try expect(!accepts("search(@.a, @.b)", element))
    }
    let tests = (0..<40).map { "search(@.a, '\(String(repeating: #"[\\p{L}x]"#, count: 10))\($0)')" }
    #expect(throws: QueryError.self) { try Filter(parsing: tests.joined(separator: "||")) }
    #expect(throws: Never.self) { try Filter(parsing: tests.prefix(10).joined(separator: "||")) }
    // Any number of distinct characters is cheap.
    let letters = String((0..<4_000).map { Character(Unicode.Scalar(UInt32(0x4E00 + $0)) ?? "a") })
    try expect(IRegexp(parsing: letters).matches(whole: letters))
  }

  @Test func expressionIsSharedBetweenThreads() async throws {
    let regexp = try IRegexp(parsing: "(a|b)*a(a|b){9}")
    await withTaskGroup(of: Bool.self) { group in
      for seed in 0..<8 as Range<UInt64> {
        group.addTask {
          var random = SeededRandom(seed: seed)
          return (0..<200).allSatisfy { _ in
            let letters = (0..<30).map { _ in random.next() & 1 == 0 ? "a" : "b" }
            return regexp.matches(whole: letters.joined()) == (letters[20] == "a")
          }
        }
      }
      for await agreed in group { expect(agreed) }
    }
  }

  /// Invalid UTF-8 gives some result, and is not read past its end.
  @Test func invalidUTF8DoesNotTrap() throws {
    let regexp = try IRegexp(parsing: "(\\p{L}|.)*x?")
    var random = SeededRandom(seed: 5)
    for _ in 0..<2_000 {
      let bytes = (0..<(random.next() % 9)).map { _ in
        UInt8(truncatingIfNeeded: random.next()) | (random.next() & 1 == 0 ? 0xC0 : 0)
      }
      bytes.withUnsafeBytes {
        _ = regexp.matches(whole: $0)
        _ = regexp.searches(in: $0)
      }
    }
  }
}
