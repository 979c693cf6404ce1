import TestSupport
import Testing

@testable import FeedCommands

/// Which section a word of the command line names.
@Suite struct SectionLookupTests {
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
      ("s/true", 0), ("s/1", 1), (#"s/"1""#, 2), (#""1""#, 2), (#""true""#, 3), ("a", 4), ("s/a", 4), ("s", 5),
    ])
  func unique(word: String, index: Int) throws {
    #expect(try find(word, Self.keyed).get() == index)
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
    #expect(text.contains(": " + named.joined(separator: ", ") + ";"))
  }

  private static let slashes = #"[{"name":"s/a/1","key":"a/1"},{"name":"s/s/x","key":"s/x"},{"name":"s/x","key":"x"}]"#

  @Test("the text of a section may have slashes", arguments: [("a/1", 0), ("s/x", 2), ("x", 2), ("s/s/x", 1)])
  func slashes(word: String, index: Int) throws {
    #expect(try find(word, Self.slashes).get() == index)
    #expect(throws: Failure.self) { try find("1", Self.slashes).get() }
  }

  @Test("a completion names each section") func words() throws {
    for sections in [Self.keyed, Self.slashes] {
      let words = try withJSON(sections) { SectionLookup($0).words(in: "s") }
      for (index, word) in words.enumerated() { #expect(try find(word, sections).get() == index, "\(word)") }
    }
    #expect(
      try withJSON(Self.keyed) { SectionLookup($0).words(in: "s") } == ["s/true", "s/1", #""1""#, #""true""#, "a", "s"])
  }

  @Test("a trigger takes the end of a name only after the name of its feed") func triggerSections() {
    let names = ["s/1", "s/a/1", #"s/"1""#, "s/s/1", "t/1", "s"]
    func matches(_ word: String) -> [String] {
      names.filter { SectionName(feed: "s", word: word).matches($0) }
    }
    #expect(matches("1") == ["s/1", "t/1"])
    #expect(matches("s/1") == ["s/1"])
    #expect(matches(#""1""#) == [#"s/"1""#])
    #expect(matches("a/1") == ["s/a/1"])
    #expect(matches("s") == ["s"])
  }

  @Test func unknown() throws {
    guard case .failure(.usage(let text)) = try find("trve", Self.keyed) else { throw TestFailure("it was found") }
    #expect(text.hasPrefix("'s' has no section 'trve'"))
  }
}
