import FeedChange
import TestSupport
import Testing

@testable import FeedCommands

/// Which section a word of the command line names.
struct SectionLookupTests {
  private static let keyed =
    #"[{"name":"s/true","key":true},{"name":"s/1","key":1},{"name":"s/\"1\"","key":"1"},{"name":"s/\"true\"","key":"true"},"#
    + #"{"name":"s/a","key":"a"},{"name":"s","key":null}]"#
  private static let repeated = #"[{"name":"inbox/urgent"},{"name":"inbox/rest"},{"name":"inbox/urgent"}]"#

  private func find(_ word: String, _ sections: String) throws -> Result<Int, Failure> {
    try withJSON(sections) { list in
      do throws(Failure) {
        return .success(try SectionLookup(list).find(word, in: "s"))
      } catch {
        return .failure(error)
      }
    }
  }

  @Test(
    "a whole name, the end of a name, or the text of a section names it",
    arguments: [
      ("s/true", 0), ("s/1", 1), ("1.0", 1), (#""a""#, 4), (#""\u0061""#, 4), (#"s/"1""#, 2), (#""1""#, 2),
      (#""true""#, 3), ("a", 4), ("s/a", 4), ("s", 5),
    ])
  func unique(word: String, index: Int) throws {
    try expectEqual(find(word, Self.keyed).get(), index)
  }

  @Test(
    "a word that can mean several sections is refused, and all are named",
    arguments: [
      ("true", keyed, ["s/true (0)", #"s/"true" (3)"#]), ("1", keyed, ["s/1 (1)", #"s/"1" (2)"#]),
      ("urgent", repeated, ["inbox/urgent (0)", "inbox/urgent (2)"]),
      ("inbox/urgent", repeated, ["inbox/urgent (0)", "inbox/urgent (2)"]),
    ])
  func ambiguous(word: String, sections: String, named: [String]) throws {
    guard case .failure(.usage(let text)) = try find(word, sections) else { throw TestFailure("\(word) was found") }
    expect(text.contains(": " + named.joined(separator: ", ") + ";"))
  }

  private static let withSlashes =
    #"[{"name":"s/a/1","key":"a/1"},{"name":"s/s/x","key":"s/x"},{"name":"s/x","key":"x"}]"#

  @Test("the text of a section may have slashes", arguments: [("a/1", 0), ("s/x", 2), ("x", 2), ("s/s/x", 1)])
  func slashes(word: String, index: Int) throws {
    try expectEqual(find(word, Self.withSlashes).get(), index)
    #expect(throws: Failure.self) { try find("1", Self.withSlashes).get() }
  }

  private static let hostile =
    #"[{"name":"s/1","key":1},{"name":"s/1.0","key":"1.0"},{"name":"s/x","key":"x"},{"name":"s/s/x","key":"s/x"},"#
    + #"{"name":"s/\"\\\"x\\\"\"","key":"\"x\""},{"name":"s/2e3","key":"2e3"},{"name":"t/x","key":"x"},{"name":"s","key":null},"#
    // Different texts, although equal after normalisation, and one whose first mark would join the slash.
    + #"{"name":"s/\u00e9","key":"\u00e9"},{"name":"s/e\u0301","key":"e\u0301"},{"name":"s/\u0301","key":"\u0301"}]"#

  @Test("a completion names each section", arguments: [keyed, withSlashes, hostile])
  func words(sections: String) throws {
    let words = try withJSON(sections) { SectionLookup($0).words() }
    for (index, word) in words.enumerated() {
      expectEqual(Int(word), nil)
      try expectEqual(find(word, sections).get(), index, "\(word)")
    }
  }

  @Test func shortWords() throws {
    try expectEqual(
      withJSON(Self.keyed) { SectionLookup($0).words() }, ["s/true", "s/1", #""1""#, #""true""#, "a", "s"])
    try expectEqual(withJSON(Self.withSlashes) { SectionLookup($0).words() }, ["a/1", "s/s/x", "x"])
  }

  @Test(
    "a section that comes and goes is named by one word",
    arguments: [
      ("1", ["s/1", "t/1"]), ("1.0", ["s/1"]), ("s/1", ["s/1"]), (#""1""#, [#"s/"1""#]), ("a/1", ["s/a/1"]),
      (#""a/1""#, ["s/a/1"]), (#""\u0061/1""#, ["s/a/1"]), ("s", ["s"]), ("true", ["s/true"]),
      (#""true""#, [#"s/"true""#]),
      ("x", []),
    ])
  func sectionNames(word: String, named: [String]) {
    let sections: [(String, String?)] = [
      ("s/1", "1"), ("s/a/1", #""a/1""#), (#"s/"1""#, #""1""#), ("s/s/1", #""s/1""#), ("t/1", nil), ("s", "null"),
      ("s/true", "true"), (#"s/"true""#, #""true""#),
    ]
    let name = SectionWord(feed: "s", word: word)
    let found = sections.filter { section, key in
      name.contains(RowChange.Place(path: IndexPath(section: 0, row: 0), section: section, key: key.map { utf8($0) }))
    }
    expectEqual(found.map(\.0), named)
  }

  @Test func unknown() throws {
    guard case .failure(.usage(let text)) = try find("trve", Self.keyed) else { throw TestFailure("it was found") }
    expect(text.hasPrefix("'s' has no section 'trve'"))
  }
}
