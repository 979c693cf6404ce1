import FeedJSON
import TestSupport
import Testing

@testable import FeedModel

@Suite("Known members of definitions")
struct KnownMembersTests {
  private func path(_ text: String, others: [String] = []) -> (path: String, advice: String?)? {
    var scanner = JSONScanner()
    return Array(text.utf8).withUnsafeBytes { bytes in
      guard let view = try? scanner.scan(bytes) else { return nil }
      do throws(KnownMembers.Refusal) {
        try KnownMembers.check(definition: view, others: others, repeats: .allowed)
        return nil
      } catch {
        return (error.path, error.advice)
      }
    }
  }

  @Test(
    "an unknown member is named with its path and the nearest known name",
    arguments: [
      (#"{"feed":"a","kind":"collection","exclusiv":true}"#, "exclusiv", "did you mean \"exclusive\"?"),
      (
        #"{"feed":"a","kind":"collection","bins":[{"name":"a","filtre":"@"}]}"#, "bins[0].filtre",
        "did you mean \"filter\"?"
      ),
      (
        #"{"feed":"a","kind":"collection","bins":[{"name":"a"},{"name":"b","sort":[{"by":"$","odrer":1}]}]}"#,
        "bins[1].sort[0].odrer", "did you mean \"order\"?"
      ),
      (#"{"feed":"a","kind":"collection","retain":{"second":1}}"#, "retain.second", "did you mean \"seconds\"?"),
      (#"{"feed":"a","kind":"single","children":[]}"#, "children", "kind \"single\" has no \"children\"; "),
    ] as [(String, String, String)])
  func unknown(text: String, member: String, advice: String) {
    let found = path(text)
    expectEqual(found?.path, member)
    expectEqual(found?.advice?.hasPrefix(advice), true, "\(found?.advice ?? "")")
  }

  @Test("members of the request and repeated members are allowed in a definition")
  func allowed() {
    expect(path(#"{"feed":"a","kind":"array","replace":true,"type":"$.a","type":"$.b"}"#, others: ["replace"]) == nil)
    expectEqual(path(#"{"feed":"a","kind":"array","replace":true}"#)?.path, "replace")
    let misspelt = path(#"{"feed":"a","kind":"array","replce":true}"#, others: ["replace"])
    expectEqual(misspelt?.advice, "did you mean \"replace\"?")
    let other = path(#"{"feed":"a","kind":"single","elements":[]}"#, others: ["replace"])
    expectEqual(other?.advice, "use one of feed, kind, selectable, multiple, editable, movable, type")
  }

  @Test(
    "every member that a definition writes is known",
    arguments: [
      #"{"feed":"a","kind":"collection","id":"$.k","type":"$.t","exclusive":true,"bins":[{"name":"x","filter":"@.a","sort":[{"by":"$.b"}]}],"retain":{"count":1,"seconds":2},"selectable":false,"multiple":false,"editable":false,"movable":false}"#,
      #"{"feed":"a","kind":"array","type":"$.t"}"#, #"{"feed":"a","kind":"single","type":"$.t"}"#,
      #"{"feed":"a","kind":"composed","children":["b"]}"#,
      #"{"feed":"a","kind":"segmented","children":["b"],"current":0}"#,
      #"{"feed":"a","kind":"slots","contents":{"A":"b"},"pattern":["A"],"repeatables":["A"],"header":["A"],"default":"A","fixed":{"0":"A"}}"#,
      #"{"feed":"a","kind":"managed","database":"/d","query":"SELECT 1","id":"i","section":"s","type":"$.t"}"#,
    ])
  func written(text: String) throws {
    var scanner = JSONScanner()
    var out = ByteBuffer()
    out.append(UInt8(ascii: "{"))
    try Array(text.utf8).withUnsafeBytes { bytes in
      try FeedDefinition(parsing: try scanner.scan(bytes), limits: Limits()).appendMembers(to: &out)
    }
    out.append(UInt8(ascii: "}"))
    let again = String(decoding: out.bytes, as: UTF8.self)
    expect(path(text) == nil)
    expect(path(again) == nil, "\(again)")
  }
}
