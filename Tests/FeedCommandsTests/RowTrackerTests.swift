import FeedChange
import FeedQuery
import TestSupport
import Testing

@testable import FeedClient
@testable import FeedCommands

struct RowTrackerTests {
  private static let sections = #"[{"name":"s/x","count":2},{"name":"s/y","count":1}]"#

  private func take(_ tracker: inout RowTracker, _ kind: Notification.Kind, _ params: String) throws -> RowNews? {
    try withJSON(params) { try tracker.take(Notification(kind: kind, params: $0, whole: $0)) }
  }

  /// A tracker of a watch whose snapshot has come, or of one that began without.
  private func tracker(knowing rows: Bool) throws -> RowTracker {
    var tracker = RowTracker("s", keepsRows: true, RowPrinter())
    let answer = #"{"feed":"s","epoch":"e","revision":1,"resumed":false,"sections":\#(Self.sections)}"#
    tracker.started(try withJSON(answer) { try WatchStart($0) }, asked: nil, hasSnapshot: rows)
    if rows {
      let first = #"{"feed":"s","revision":1,"at":[0,0],"elements":[{"id":1.0},{"id":"\u0061"}],"last":false}"#
      _ = try take(&tracker, .snapshot, first)
      _ = try take(&tracker, .snapshot, #"{"feed":"s","revision":1,"at":[1,0],"elements":[{"id":2}],"last":true}"#)
    }
    return tracker
  }

  private static let lists =
    #""deleted":[[0,0],[0,1]],"added":[],"updated":[],"sections":{"deleted":[1],"added":[]},"elements":[]"#

  /// The identities and places of the deleted rows of a delta.
  private func deleted(_ tracker: RowTracker, _ ids: String, lists: String = lists) throws -> [String] {
    var tracker = tracker
    let news = try take(&tracker, .delta, #"{"feed":"s","from":1,"revision":2,\#(lists)\#(ids)}"#)
    return try require(news).rows.map { row in
      "\(row.id.map { String(decoding: $0, as: UTF8.self) } ?? "?") \(row.before.map { "\($0.path)" } ?? "")"
    }
  }

  @Test("an older daemon tells no identities, so those of remembered rows are told") func olderDaemon() throws {
    try expectEqual(deleted(tracker(knowing: true), ""), ["1.0 [0,0]", #""\u0061" [0,1]"#, "2 [1,0]"])
    try expectEqual(deleted(tracker(knowing: false), ""), ["? [0,0]", "? [0,1]", "? [1,0]"])
    try expectEqual(deleted(tracker(knowing: false), #","deletedIDs":null"#), ["? [0,0]", "? [0,1]", "? [1,0]"])
  }

  @Test("identities that the daemon tells are written as in the elements, if these are known") func told() throws {
    let ids = #","deletedIDs":[1,"a"],"deletedSectionIDs":[[2]]"#
    try expectEqual(deleted(tracker(knowing: true), ids), ["1.0 [0,0]", #""\u0061" [0,1]"#, "2 [1,0]"])
    try expectEqual(deleted(tracker(knowing: false), ids), ["1 [0,0]", #""a" [0,1]"#, "2 [1,0]"])
    // The daemon knows best where the identity of an element is.
    let others = #","deletedIDs":["k",null],"deletedSectionIDs":[["l"]]"#
    try expectEqual(deleted(tracker(knowing: true), others), [#""k" [0,0]"#, #""\u0061" [0,1]"#, #""l" [1,0]"#])
  }

  @Test("lists of another length are no delta") func wrongLists() throws {
    for ids in [#""deletedIDs":[1]"#, #""deletedIDs":[1,2]"#, #""deletedIDs":[1,2],"deletedSectionIDs":[]"#] {
      #expect(throws: MalformedMessage.self) { try deleted(tracker(knowing: false), ",\(ids)") }
    }
  }

  @Test("a row that leaves a deleted section and comes elsewhere moved, however its identity is written") func pairs()
    throws
  {
    let lists =
      #""deleted":[],"added":[[0,2]],"updated":[],"sections":{"deleted":[1],"added":[]},"elements":[{"id":2.0}]"#
    for (rows, ids) in [(true, ""), (false, #","deletedIDs":[],"deletedSectionIDs":[[2]]"#)] {
      try expectEqual(deleted(tracker(knowing: rows), ids, lists: lists), ["2.0 [1,0]"])
    }
  }

  @Test("after a reset, a row with the identity of one of another feed is another row") func otherFeed() {
    let print = RowPrint(digest: 1, id: utf8("5"))
    var rows = ChunkedList<Row>()
    rows.append(contentsOf: [Row(element: print.text)])
    var comparison = ResetComparison([Mirror.Section(name: "todo/x", rows: rows)])
    let other = comparison.judge(print, section: "done")
    expect(other.kind == .added && other.before == nil)
    expectEqual(comparison.missing.map(\.kind), [.deleted])
    // The combining accent and the slash are one character.
    expectEqual(comparison.judge(print, section: "todo/\u{301}y").kind, .moved)
  }

  private func comparison(_ prints: [RowPrint]) -> ResetComparison {
    var rows = ChunkedList<Row>()
    rows.append(contentsOf: prints.map { Row(element: $0.text) })
    return ResetComparison([Mirror.Section(name: "s", rows: rows)])
  }

  @Test("after a reset, a row of a slots feed is compared with one of the same type") func types() {
    let known = [RowPrint(digest: 1, type: 7, id: utf8("5")), RowPrint(digest: 2, type: 8, id: utf8("5"))]
    var slots = comparison(known)
    expectEqual(slots.judge(RowPrint(digest: 3, type: 8, id: utf8("5")), section: "s").before?.path.row, 1)
    expectEqual(slots.missing.map(\.before?.path.row), [0])
    slots = comparison([known[0]])
    expectEqual(slots.judge(known[1], section: "s").kind, .added)
    expectEqual(slots.missing.count, 1)
    // The types of rows that were saved by a former version are unknown, or of those after the reset.
    slots = comparison([RowPrint(digest: 1, id: utf8("5"))])
    expectEqual(slots.judge(known[0], section: "s").kind, .unchanged)
    slots = comparison(known)
    expectEqual(slots.judge(RowPrint(digest: 2, id: utf8("5")), section: "s").kind, .unchanged)
    expectEqual(slots.judge(RowPrint(digest: 3, id: utf8("5")), section: "s").before?.path.row, 0)
  }

  @Test("after a reset, a row of a view is the same as one of the same element, not as one of the same identity only")
  func digests() {
    var view = comparison([RowPrint(digest: 1, id: utf8("5")), RowPrint(digest: 2, id: utf8("5"))])
    expectEqual(view.judge(RowPrint(digest: 2, id: utf8("5")), section: "s").kind, .unchanged)
    expectEqual(view.missing.map(\.before?.path.row), [0])
  }

  @Test("after a reset, equal rows without identity are taken in order, first those of the same section")
  func equalRows() {
    let sections = [("s/x", 2), ("s/y", 1), ("s/x", 1)].map { name, count in
      var rows = ChunkedList<Row>()
      rows.append(contentsOf: Array(repeating: Row(element: RowPrint(digest: 1, id: nil).text), count: count))
      return Mirror.Section(name: name, rows: rows)
    }
    var comparison = ResetComparison(sections)
    let places = ["s/y", "s/y", "s/x", "s/z", "s/x"].map { section in
      comparison.judge(RowPrint(digest: 1, id: nil), section: section).before.map { "\($0.path)" }
    }
    expectEqual(places, ["[1,0]", "[0,0]", "[0,1]", "[2,0]", nil])
    expect(comparison.missing.isEmpty)
  }

  @Test(
    "the text of a print has all of it",
    arguments: [
      RowPrint(digest: 1, type: .max, id: utf8("\"a-b\"")), RowPrint(digest: .max, type: 0, id: nil, isAccepted: false),
      RowPrint(digest: 1, id: utf8("\"-0000000000000001\"")), RowPrint(digest: 1, id: nil),
    ]) func texts(of print: RowPrint)
  {
    expectEqual(RowPrint(print.text), print)
    for length in 0..<print.text.count - 2 { _ = RowPrint(Array(print.text.prefix(length))) }
  }

  @Test("slots feeds and views of several feeds have rows that may share an identity") func mixtures() {
    let shown = [
      "one": ["inbox"], "two": ["inbox", "list"], "all": ["inbox", "list"], "view": ["all"], "top": ["view"],
      "twice": ["one", "inbox"],
    ]
    let kinds = ["one": "slots", "two": "slots", "all": "composed", "view": "view", "top": "view", "twice": "slots"]
    var identities = IdentityPaths.id
    identities.addMixtures(kinds, shown)
    let shared = (shown.keys + ["inbox/rest", "list"]).filter { identities.areShared(in: $0) }
    expectEqual(shared.sorted(), ["top", "two", "view"])
    expect(identities.areShared(in: nil) && !IdentityPaths.id.areShared(in: nil))
  }

  @Test("types name the feeds in slots feeds and views of them, but not the types of elements") func typedMixtures() {
    let lists = ["inbox", "list"]
    let shown = [
      "content": lists, "element": lists, "all": lists, "first": ["content"], "top": ["first"], "second": ["element"],
      "third": ["all"],
    ]
    let kinds = [
      "content": "slots", "element": "slots", "all": "composed", "first": "view", "top": "view", "second": "view",
      "third": "view",
    ]
    var identities = IdentityPaths.id
    identities.addMixtures(kinds, shown, elementTypes: ["element"])
    expectEqual(shown.keys.filter { identities.areTyped(in: $0) }.sorted(), ["content", "first", "top"])
    expect(!identities.areTyped(in: nil))
  }

  @Test("sections whose names are equal only after normalisation are different sections") func normalisation() {
    let print = RowPrint(digest: 1, id: utf8("5"))
    var rows = ChunkedList<Row>()
    rows.append(contentsOf: [Row(element: print.text)])
    var comparison = ResetComparison([Mirror.Section(name: "f/caf\u{E9}", rows: rows)])
    expectEqual(comparison.judge(print, section: "f/cafe\u{301}").kind, .moved)
  }

  @Test(
    arguments: [
      ("1.0", "1"), ("-0", "0"), ("12e2", "1200"), ("1e400", "1e400"), ("\"a\"", "\"a\""),
      (#""\u0061\/\n""#, #""a/\n""#),
      (#""\ud83d\ude00""#, "\"😀\""), (#""\ud800""#, #""\ud800""#), ("\"1.0\"", "\"1.0\""),
    ])
  func canonicalIdentities(text: String, canonical: String) {
    expectEqual(RowPrint.canonical(utf8(text)), utf8(canonical))
  }

  @Test func placesOfIdentities() throws {
    func element(_ paths: [(String, String)], in section: String?) throws -> String {
      var identities = IdentityPaths.id
      for (feed, path) in paths { identities.add(try SingularPath(parsing: path), of: feed) }
      return String(decoding: identities.element(withID: utf8("7"), in: section), as: UTF8.self)
    }
    try expectEqual(element([], in: "s"), #"{"id":7}"#)
    try expectEqual(element([("s", "$.a['b-c']")], in: nil), #"{"a":{"b-c":7}}"#)
    try expectEqual(element([("s", "$")], in: "s"), "7")
    try expectEqual(element([("s", "$[0]")], in: "s"), "{}")
    let two = [("s", "$.id"), ("t", "$.key")]
    try expectEqual(element(two, in: "s/x"), #"{"id":7}"#)
    try expectEqual(element(two, in: "t"), #"{"key":7}"#)
    try expectEqual(element(two, in: "t/\u{301}x"), #"{"key":7}"#)
    try expectEqual(element(two, in: "home"), #"{"id":7,"key":7}"#)
  }

  @Test(
    "the rows at the start are needed to judge deleted rows, and to tell whether a moved row is updated",
    arguments: [
      (nil, nil, false), (nil, "@.p", true), ("added", "@.p", false), ("deleted", nil, false), ("deleted", "@.p", true),
      ("added,deleted", "@.p", true), ("moved", nil, true), ("updated", nil, true), ("moved,updated", nil, false),
      ("added,updated,moved", "@.p", false),
    ] as [(String?, String?, Bool)])
  func neededRows(words: String?, condition: String?, isNeeded: Bool) throws {
    try expectEqual(ChangeFilter(words, option: "only", where: condition).needsRows, isNeeded)
  }
}
