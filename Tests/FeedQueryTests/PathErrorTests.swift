import TestSupport
import Testing

@testable import FeedQuery

/// The offsets and messages of syntax errors.
struct PathErrorTests {
  private static let refusedPaths: [(String, Int, String)] = [
    ("", 0, "write `$`"), (" $", 0, "remove the blank space"), ("$ ", 1, "remove the blank space"),
    ("@.a", 0, "begins with `$`"),
    ("a", 0, "begins with `$`"), ("$x", 1, "expected `.`"), ("$.a]", 3, "found `]`"), ("$.", 2, "the end of the text"),
    ("$..", 3, "the end of the text"), ("$...a", 3, "remove one `.`"), ("$.[0]", 2, "remove one `.`"),
    ("$. a", 2, "blank space"),
    ("$.1", 2, "write an index as `[0]`"), ("$.'a'", 2, "`['name']`"), ("$.a-b", 3, "found `-`"),
    ("$.é&", 4, "found `&`"),
    ("$[", 2, "the end of the text"), ("$[]", 2, "write `*`"), ("$[0", 3, "the `[` at byte 1 is not closed"),
    ("$[0 2]", 4, "expected `,`"),
    ("$[,0]", 2, "remove the comma"), ("$[0,]", 4, "before `]`"), ("$[a]", 2, "needs quotes"),
    ("$[@.a]", 2, "needs a `?`"),
    ("$[(@.a)]", 2, "begins with `?`"), ("$[+1]", 2, "remove the `+`"), ("$[01]", 2, "leading zero"),
    ("$[-0]", 2, "write `0`"),
    ("$[- 1]", 3, "expected a digit"), ("$[1.0]", 3, "remove the fraction"), ("$[1e2]", 3, "remove the fraction"),
    ("$[9007199254740992]", 2, "out of range"), ("$[0, -9007199254740992]", 5, "out of range"),
    ("$[1:+2]", 4, "remove the `+`"),
    ("$[1:2:3:4]", 7, "more than two colons"), ("$[1:2:a]", 6, "expected `,` or `]`"),
    ("$[1:99999999999999999999999]", 4, "out of range"),
    ("$['a", 4, "begins at byte 2 is not closed"), ("$[\"a", 4, "add `\"`"), ("$['\\", 4, "rest of an escape"),
    ("$['\\x']", 3, "not an escape"),
    ("$['\\\"']", 3, "only the quote"), ("$[\"\\'\"]", 3, "only the quote"), ("$['a\nb']", 4, "\\u000A"),
    ("$['\\u12']", 7, "four hexadecimal"),
    ("$['\\ud800']", 3, "unpaired surrogate"), ("$['\\uDC00']", 3, "unpaired surrogate"),
    ("$['é\\ud800\\u0041']", 5, "unpaired surrogate"),
    ("$[?@.a==]", 8, "found `]`"), ("$[?]", 3, "found `]`"), ("$[?@.a=1]", 6, "write `==`"),
    ("$[?@.a=~'x']", 6, "`match("),
    ("$[?@.a===1]", 8, "found `=`"), ("$[?@.a==1==2]", 9, "cannot be chained"),
    ("$[?@.a<@.b<@.c]", 10, "cannot be chained"),
    ("$[?true]", 3, "compare it"),
    ("$[?'a' && @.b]", 3, "compare it"), ("$[?@.a & @.b]", 7, "write `&&`"), ("$[?@.a | @.b]", 7, "write `||`"),
    ("$[?@.a && ]", 10, "found `]`"), ("$[?!!@.a]", 4, "repeated `!`"), ("$[?!@.a==1]", 4, "write `!(… == …)`"),
    ("$[?(@.a)==1]", 3, "cannot be compared"),
    ("$[?1==(@.a)]", 6, "cannot be compared"), ("$[?(@.a]", 7, "expected `&&`"), ("$[?(@.a", 7, "the `(` at byte 3"),
    ("$[?@.a)]", 6, "expected `,`"),
    ("$[?@.*==1]", 3, "may select several nodes"), ("$[?1==@..a]", 6, "may select several nodes"),
    ("$[?@.a==True]", 8, "lower case"),
    ("$[?@.a==abc]", 8, "`'abc'`"), ("$[?@.a==+1]", 8, "remove the `+`"), ("$[?@.a==01]", 8, "leading zero"),
    ("$[?@.a==1.]", 10, "digit after `.`"),
    ("$[?@.a==.1]", 8, "`0.1`"), ("$[?@.a==1e]", 10, "the exponent"), ("$[?@.a=={}]", 8, "objects"),
    ("$[?@.a==[1]]", 8, "write `@[…]`"),
    ("$[?foo(@.a)]", 3, "unknown function"), ("$[?count (@.a)==1]", 8, "remove the blank space"),
    ("$[?count()==1]", 3, "one argument, not 0"),
    ("$[?count(@.a,@.b)==1]", 3, "not 2"), ("$[?count(1)==1]", 9, "takes a query"), ("$[?count(@.a)]", 3, "compare it"),
    ("$[?length(@.*)==1]", 10, "may select"),
    ("$[?length(@.a == 1)==1]", 14, "not a condition"), ("$[?length((@.a))==1]", 10, "not a condition"),
    ("$[?length(!@.a)==1]", 10, "not a condition"),
    ("$[?match(@.a)]", 3, "two arguments, not 1"), ("$[?match(@.a, 'a')==true]", 3, "use it alone"),
    ("$[?value(value(@.a))==1]", 9, "takes a query"),
    ("$[?length(match(@.a,'a'))==1]", 10, "is a condition"), ("$[?count(@.a", 12, "not closed"),
    ("$[?count(@.a;@.b)==1]", 12, "expected `,`"),
    ("$[?match(@.a, '[a-z]{5000}')]", 14, "too large"),
  ]

  @Test(arguments: refusedPaths)
  func reportsOffsetOfError(path: String, offset: Int, message: String) {
    let error = refusal(path)
    expectEqual(error?.offset, offset, "\(path): \(String(describing: error))")
    expectEqual(error?.message.contains(message), true, "\(path): \(String(describing: error))")
  }

  private static let refusedFilters: [(String, Int, String)] = [
    ("", 0, "empty"), ("  ", 2, "empty"), ("?@.a", 0, "remove the `?`"), ("@.a == 1)", 8, "unmatched `)`"),
    ("@.a == 1 2", 9, "end of the filter"),
    ("@.a = 1", 4, "`==`"), ("$[0", 3, "not closed"), ("@.a ==", 6, "the end of the text"),
  ]

  @Test(arguments: refusedFilters)
  func refusesFilters(filter: String, offset: Int, message: String) throws {
    let error = #expect(throws: QueryError.self) { try Filter(parsing: filter) }
    expect(error?.offset == offset && error?.message.contains(message) == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    ("$.a.*", 3), ("$..a", 1), ("$['a',0]", 1), ("$.a [1:2]", 4), ("$[?@.a]", 1), ("@.a", 0), ("$.a[", 4),
  ])
  func refusesPathsThatAreNotSingular(path: String, offset: Int) throws {
    let error = #expect(throws: QueryError.self) { try SingularPath(parsing: path) }
    expectEqual(error?.offset, offset)
  }

  @Test func nestingIsBounded() throws {
    let depth = QueryLimits.nesting
    func parentheses(_ count: Int) -> String {
      String(repeating: "(", count: count) + "@.a" + String(repeating: ")", count: count)
    }
    func filters(_ count: Int) -> String {
      "$" + String(repeating: "[?@", count: count) + String(repeating: "]", count: count)
    }
    func calls(_ count: Int) -> String {
      String(repeating: "length(", count: count) + "@" + String(repeating: ")", count: count) + "==1"
    }
    try expect(accepts(parentheses(depth), #"{"a":1}"#))
    expectEqual(refusal(filters(depth)), nil)
    try expect(!accepts(calls(depth), "1"))
    for text in [
      parentheses(depth + 1), calls(depth + 1), parentheses(200_000), String(repeating: "!(", count: 200_000),
    ] {
      let error = #expect(throws: QueryError.self) { try Filter(parsing: text) }
      expectEqual(error?.message.contains("levels deep"), true)
    }
    expectEqual(refusal(filters(depth + 1))?.message.contains("levels deep"), true)
    expectEqual(refusal(filters(100_000))?.message.contains("levels deep"), true)
  }

  @Test func lengthIsBounded() {
    let limit = QueryLimits.textLength
    expectEqual(refusal("$['" + String(repeating: "a", count: limit - 5) + "']"), nil)
    expectEqual(refusal("$['" + String(repeating: "a", count: limit - 4) + "']")?.offset, limit)
    expectEqual(refusal("$" + String(repeating: "[0]", count: 300_000)), nil)
  }
}
