import TestSupport
import Testing

@testable import FeedQuery

/// The cost of matching, in units of work rather than time.
@Suite struct RegexpCostTests {
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
      #expect(result == false)
      // Each transition is computed once; later characters are looked up.
      #expect(work < 1_000, "\(expression) took \(work)")
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
      #expect(result == expected, "seed \(seed), length \(length)")
      #expect(work <= length * 20)
    }
    #expect(work(matcher, on: letters.joined(), isWhole: false).result == true)
  }

  @Test func stopsWhenTheWorkRunsOut() throws {
    var random = SeededRandom(seed: 1)
    var text = (0..<3_000).map { _ in random.next() & 1 == 0 ? "a" : "b" }.joined()
    let matcher = try RegexpMatcher(parsing: "(a|b)*a(a|b){300}c")
    var left = 1_000
    let result = text.withUTF8 { matcher.matches(UnsafeRawBufferPointer($0), isWhole: true, work: &left) }
    #expect(result == nil && left < 0)
    // The states cached until then do not change later results.
    #expect(work(matcher, on: text).result == false)
  }

  @Test func tooManyClassesAreRefused() throws {
    let distinct = (0..<1_100).map { "[^" + String(Character(Unicode.Scalar(UInt32(0x4E00 + $0)) ?? "a")) + "]" }
    let error = #expect(throws: QueryError.self) { try IRegexp(parsing: distinct.joined()) }
    #expect(error?.message.contains("character classes") == true)
    // Any number of distinct characters is cheap.
    let letters = String((0..<4_000).map { Character(Unicode.Scalar(UInt32(0x4E00 + $0)) ?? "a") })
    #expect(try IRegexp(parsing: letters).matches(whole: letters))
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
      for await agreed in group { #expect(agreed) }
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
