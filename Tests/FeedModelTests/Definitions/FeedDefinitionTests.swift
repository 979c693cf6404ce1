import FeedChange
import FeedJSON
import FeedQuery
import TestSupport
import Testing

@testable import FeedModel

/// Parsing of definitions: limits on names, references, sorts, bins and filters, and the round trip through JSON.
@Suite struct FeedDefinitionTests {
  private func parse(_ text: String, limits: Limits = Limits()) throws -> FeedDefinition {
    try withJSON(text) { try FeedDefinition(parsing: $0, limits: limits) }
  }

  /// The template with `value` in place of `%`.
  private func fill(_ template: String, _ value: String) -> String {
    template.split(separator: "%").joined(separator: value)
  }

  @Test(arguments: [
    ("feed", #"{"feed":"%","kind":"array"}"#),
    ("bins[0].name", #"{"feed":"inbox","kind":"collection","bins":[{"name":"%"}]}"#),
  ])
  func longNamesAreRefused(member: String, template: String) throws {
    let most = FeedName.maxLength
    _ = try parse(fill(template, String(repeating: "a", count: most)))
    _ = try parse(fill(template, String(repeating: "\\u0061", count: most)))
    let error = FeedError.invalidParams(member: member, reason: "must be 1 to 128 of the characters A-Z a-z 0-9 . _ -")
    for name in [
      String(repeating: "a", count: most + 1), String(repeating: "\\u0061", count: most + 1),
      String(repeating: "é", count: 1_000_000), "", "a/b",
    ] {
      #expect(throws: error, "\(name.count)") { try parse(fill(template, name)) }
    }
  }

  @Test(arguments: [
    ("children[0]", #"{"feed":"home","kind":"composed","children":["%"]}"#),
    ("contents.A", #"{"feed":"home","kind":"slots","contents":{"A":"%"},"pattern":["A"]}"#),
  ])
  func longReferencesAreRefused(member: String, template: String) throws {
    let name = String(repeating: "a", count: FeedName.maxLength)
    _ = try parse(fill(template, "\(name)/\(name)"))
    let error = FeedError.invalidParams(member: member, reason: "must name a feed, or a bin as collection/bin")
    for reference in ["\(name)a/b", "\(name)/\(name)a", String(repeating: "a", count: 1_000_000), "a/b/c"] {
      #expect(throws: error, "\(reference.count)") { try parse(fill(template, reference)) }
    }
  }

  @Test func longKindIsRefused() {
    let kind = String(repeating: "a", count: 1_000_000)
    let kinds = FeedDefinition.kinds.joined(separator: ", ")
    #expect(throws: FeedError.invalidParams(member: "kind", reason: "must be one of \(kinds)")) {
      try parse(#"{"feed":"inbox","kind":"\#(kind)"}"#)
    }
  }

  /// The number of terms is checked before the terms, which are invalid here.
  @Test func tooManySortTermsAreRefused() throws {
    func text(_ count: Int, _ term: String) -> String {
      let terms = repeatElement(term, count: count).joined(separator: ",")
      return #"{"feed":"inbox","kind":"collection","bins":[{"name":"all","sort":[\#(terms)]}]}"#
    }
    let most = CollectionDefinition.maxSortTerms
    _ = try parse(text(most, #"{"by":"$.a"}"#))
    let error = FeedError.invalidParams(member: "bins[0].sort", reason: "must have at most 64 terms")
    #expect(throws: error) { try parse(text(most + 1, #"{"by":"$.a"}"#)) }
    #expect(throws: error) { try parse(text(most + 1, "0")) }
  }

  @Test func tooManyBinsAreRefused() {
    var limits = Limits()
    limits.maxBins = 2
    let error = FeedError.limitExceeded(
      limit: "maxBins", value: 2, reason: "define fewer bins, or start feedd with a larger --max-bins")
    #expect(throws: error) { try parse(#"{"feed":"inbox","kind":"collection","bins":[0,0,0]}"#, limits: limits) }
  }

  @Test func duplicateBinNamesAreRefused() {
    let error = FeedError.invalidParams(member: "bins[1].name", reason: "is \"a\", the name of another bin")
    #expect(throws: error) {
      try parse(#"{"feed":"inbox","kind":"collection","bins":[{"name":"a"},{"name":"a"}]}"#)
    }
  }

  @Test func longFiltersAreRefused() {
    let limit = QueryLimits.textLength
    let error = FeedError.badQuery(
      member: "bins[0].filter", text: "", offset: limit,
      reason: "the text is longer than \(grouped(limit)) bytes; shorten it")
    let filter = String(repeating: " ", count: limit + 1)
    #expect(throws: error) {
      try parse(#"{"feed":"inbox","kind":"collection","bins":[{"name":"all","filter":"\#(filter)"}]}"#)
    }
  }

  @Test func longFixedPositionsAreRefused() {
    let position = String(repeating: "0", count: 65)
    let error = FeedError.invalidParams(
      member: "fixed.", reason: "must be a position, 0 or greater, with the name of a type")
    #expect(throws: error) {
      try parse(#"{"feed":"mix","kind":"slots","contents":{"A":"a"},"pattern":["A"],"fixed":{"\#(position)":"A"}}"#)
    }
  }

  @Test(arguments: [
    #"{"feed":"styles","kind":"array","type":"$.kind","editable":false}"#,
    #"{"feed":"banner","kind":"single","selectable":false}"#,
    #"{"feed":"home","kind":"composed","children":["banner","inbox/urgent"],"movable":false}"#,
    #"{"feed":"tabs","kind":"segmented","children":["home","styles"],"current":9,"multiple":false}"#,
    #"{"feed":"mix","kind":"slots","contents":{"B":"b","A":"a"},"pattern":["A","B"],"repeatables":["A"],"header":["B"],"#
      + #""default":"A","fixed":{"10":"A","2":"B"}}"#,
    #"{"feed":"inbox","kind":"collection","id":"$.key","exclusive":true,"type":"$.kind","bins":[{"name":"urgent","#
      + #""filter":"@.priority >= 8","sort":[{"by":"$.priority","order":"descending"},{"by":"$.id"}]},{"name":"rest"}],"#
      + #""retain":{"count":10,"seconds":0.5}}"#,
  ])
  func writtenDefinitionReadsAsEqual(text: String) throws {
    let definition = try parse(text)
    var out = ByteBuffer()
    out.append("{")
    definition.appendMembers(to: &out)
    out.append("}")
    let written = String(decoding: out.bytes, as: UTF8.self)
    try expectEqual(parse(written), definition, "\(written)")
  }
}
