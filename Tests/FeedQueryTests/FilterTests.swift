import TestSupport
import FeedJSON
import Testing

@testable import FeedQuery

struct FilterTests {
  static let element = #"""
    {"priority":9,"read":false,"title":"Grüße 😀","empty":"","tags":["a","b"],"user":{"name":"x"},"none":null,
     "big":123456789012345678901234567890,"time":1718000000000,"twice":1,"esc":"a\u0062c","twice":2,"half":0.5}
    """#

  private static let filterResults: [(String, Bool)] = [
    ("@.priority >= 8 && @.read == false", true), ("@.priority>8", true), ("@.priority < 9", false),
    ("@.priority <= 9.0", true),
    ("@.priority == 90e-1", true), ("8 < @.priority", true), ("10 <= @.priority", false), ("9 != @.priority", false),
    ("@.read", true),
    ("!@.read", false), ("@.read == true", false), ("@.read != true", true), ("@.read < true", false),
    ("@.read <= false", true),
    ("@.none == null", true), ("@.absent == null", false), ("@.absent == @.missing", true),
    ("@.absent != @.missing", false),
    ("@.absent <= @.missing", true), ("@.absent < @.missing", false), ("@.absent < 1", false), ("@.absent != 1", true),
    ("!@.absent", true),
    ("@.title == 'Grüße 😀'", true), ("@.title == \"Gr\\u00fc\\u00dfe \\uD83D\\uDE00\"", true),
    ("length(@.title) == 7", true),
    ("@.empty == ''", true), ("@.empty < 'a'", true), ("@.title > 'Gr'", true), ("@.title < 'Gs'", true),
    ("@.title == 1", false),
    ("@.esc == 'abc'", true), ("@.esc > 'abb'", true), ("@.esc < 'abcd'", true), ("length(@.esc) == 3", true),
    ("match(@.esc, 'a.c')", true),
    ("@.tags[0] == 'a'", true), ("@.tags[-1] == 'b'", true), ("@.tags[2]", false), ("@.tags[-3]", false),
    ("@.priority[0]", false),
    ("@.tags[?@ == 'b']", true), ("@.tags[?@ == 'c']", false), ("@.tags == $.tags", true), ("@.tags == @.user", false),
    ("@.user.name == 'x'", true), ("@['user']['name'] == 'x'", true), ("@..name", true),
    ("count(@.tags[*]) == 2", true),
    ("count(@.*) == 12", true), ("length(@) == 12", true), ("length(@.tags) == 2", true), ("length(@.user) == 1", true),
    ("length(@.priority) == length(@.absent)", true), ("length('abc') == 3", true), ("length(1) == 1", false),
    ("value(@..name) == 'x'", true),
    ("value(@.tags[*]) == 'a'", false), ("value(@.tags[*]) == @.absent", true), ("length(value(@..name)) == 1", true),
    ("@.big == 123456789012345678901234567890", true), ("@.big > 123456789012345678901234567889", true),
    ("@.big < 1e30", true),
    ("@.big == 12345678901234567890123456789e1", true), ("@.time > 1717999999999.5", true), ("@.half == 5e-1", true),
    ("@.half < 1", true),
    ("count(@.*) > @.half", true), ("count(@.*) < @.big", true), ("@.big > count(@.*)", true),
    ("count(@.*) == '12'", false),
    ("count(@.tags[*]) == length(@.tags)", true), ("count(@.tags[*]) < length(@)", true), ("1 == 1.0", true),
    ("'a' < 'b'", true),
    ("null == null", true), ("true == false", false), ("1 == '1'", false), ("@.twice == 2", true),
    ("@.twice == 1", false),
    ("$.priority == @.priority", true), ("search(@.title, 'ü.e')", true), ("match(@.title, 'ü.e')", false),
    ("match(@.title, 'Gr.* .')", true),
    ("match(@.priority, '9')", false), ("match(@.title, '(')", false), ("!match(@.title, '(')", true),
    ("match(@.title, 9)", false),
    ("match('a', @.tags[0])", true), ("search('xay', @.tags[0])", true), ("match('abc', 'a.c')", true),
    ("  @.read  ", true),
    ("@.read == false || @.absent == 1 && @.absent == 2", true),
    ("(@.read == false || @.absent == 1) && @.absent == 2", false),
    ("!(@.read == false) || !(@.absent)", true), ("!(@.priority > 1 && @.priority < 5)", true), ("@ == $", true),
    ("@", true), ("$", true),
    ("@.user == @.user && @.user <= @.user && !(@.user < @.user)", true), ("@.tags[?@ == $.tags[1]]", true),
    ("@[?@.name == 'x']", true),
  ]

  @Test(arguments: filterResults)
  func accepts(filter: String, expected: Bool) throws {
    try expectEqual(FeedQueryTests.accepts(filter, Self.element), expected)
  }

  @Test(
    "a filter is short if it compares few single nodes with literals",
    arguments: [
      ("@.a == 1", true), ("@.a.b[3] > 'x' && @.c || !@.d", true), ("@.a == @.b", false), ("@..a", false),
      ("@.a[*]", false), ("@[?@.a]", false), ("search(@.a, 'x')", false), ("length(@.a) > 3", false),
      ((0..<17).map { "@.a == \($0)" }.joined(separator: "||"), false),
    ])
  func short(filter: String, expected: Bool) throws {
    try expectEqual(Filter(parsing: filter).isShort, expected)
  }

  @Test func largeIntegersAreComparedExactly() throws {
    try expect(!FeedQueryTests.accepts("@ == 9007199254740993", "9007199254740992"))
    try expect(FeedQueryTests.accepts("@ > 9223372036854775807", "9223372036854775808"))
    try expect(FeedQueryTests.accepts("@ == -9223372036854775808", "-9223372036854775808"))
    try expect(FeedQueryTests.accepts("@ < 1e999999999999999999999", "1e99999"))
    try expect(FeedQueryTests.accepts("@ == 0", "-0.0e5"))
  }

  @Test func unpairedSurrogatesAreOneCharacter() throws {
    try expect(FeedQueryTests.accepts("length(@) == 3", #""a\ud800b""#))
    try expect(FeedQueryTests.accepts("match(@, 'a.b')", #""a\ud800b""#))
    try expect(FeedQueryTests.accepts("match(@, 'a[^x]b') && !match(@, 'a\\\\P{L}b\\\\p{L}')", #""a\ud800b""#))
  }

  @Test func patternsFromTheValueAreRecompiled() throws {
    let filter = try Filter(parsing: "match(@.text, @.pattern)")
    for (text, pattern, expected) in [
      ("aa", "a+", true), ("ab", "a+", false), ("ab", "[ab]+", true), ("ab", "(", false), ("ab", "a{9}{9}", false),
      ("ab", "a{5000}", false),
      ("ab", "..", true), ("ab", "..", true),
    ] {
      try withJSON(#"{"text":"\#(text)","pattern":"\#(pattern)"}"#) {
        expectEqual(filter.accepts($0), expected, "\(pattern)")
      }
    }
  }

  @Test func filterIsSharedBetweenThreads() async throws {
    let filter = try Filter(parsing: "match(@.text, @.pattern) || search(@.text, 'b+$')")
    await withTaskGroup(of: Bool?.self) { group in
      for index in 0..<8 {
        group.addTask {
          try? withJSON(#"{"text":"a\#(index % 2 == 0 ? "b" : "c")","pattern":"c\#(index)"}"#) { element in
            (0..<200).allSatisfy { _ in filter.accepts(element) == (index % 2 == 0) }
          }
        }
      }
      for await agreed in group { expectEqual(agreed, true) }
    }
  }
}
