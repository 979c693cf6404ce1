import FeedChange
import FeedClient
import FeedSystem
import TestSupport
import Testing

@testable import FeedCommands

struct SinceFileTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("since.json") }

  init() throws { directory = try TemporaryDirectory() }

  private func write(_ text: String) throws { try SmallFile.replace(path, with: utf8(text)) }

  private func state(_ epoch: String, _ revision: UInt64, rows: SavedRows? = nil) -> SinceFile.State {
    SinceFile.State(position: FeedPosition(epoch: epoch, revision: revision), rows: rows)
  }

  private func contents() throws -> String { text(try SmallFile.read(path)) }

  @Test func missingAndEmptyFilesHaveNoPosition() throws {
    try expectEqual(SinceFile(path: path, feeds: ["f"]).positions, [:])
    try write("")
    try expectEqual(SinceFile(path: path, feeds: ["f"]).positions, [:])
  }

  @Test func savedPositionIsReadBack() throws {
    var file = try SinceFile(path: path, feeds: ["f"])
    try file.save([:])
    #expect(throws: SystemError.self) { try contents() }
    try file.save(["f": state("é\"x", 9_007_199_254_740_993)])
    try expectEqual(contents(), "{\"feed\":\"f\",\"epoch\":\"é\\\"x\",\"revision\":9007199254740993}\n")
    let again = try SinceFile(path: path, feeds: ["f"])
    expectEqual(again.positions, ["f": FeedPosition(epoch: "é\"x", revision: 9_007_199_254_740_993)])
  }

  @Test func onlyNewPositionsAreWritten() throws {
    var file = try SinceFile(path: path, feeds: ["f"])
    try file.save(["f": state("e", 3)])
    try write("changed by somebody else")
    try file.save(["f": state("e", 3)])
    try expectEqual(contents(), "changed by somebody else")
    try file.save(["f": state("e", 4)])
    try expectEqual(JSONValue(contents())["revision"].int, 4)
  }

  @Test func fileHasALineForEachFeed() throws {
    var file = try SinceFile(path: path, feeds: ["f", "g", "h"])
    try file.save(["h": state("e", 3), "f": state("e", 2)])
    try expectEqual(
      contents(),
      """
      {"feed":"f","epoch":"e","revision":2}
      {"feed":"h","epoch":"e","revision":3}

      """)
    // A feed without a new position keeps the one in the file.
    var again = try SinceFile(path: path, feeds: ["h", "g", "f"])
    try again.save(["g": state("e", 5)])
    let positions = try SinceFile(path: path, feeds: ["f", "g", "h"]).positions
    expectEqual(positions.mapValues(\.revision), ["f": 2, "g": 5, "h": 3])
    // The position of another feed would be lost by the next save.
    let failure = #expect(throws: Failure.self) { try SinceFile(path: path, feeds: ["f", "g"]) }
    let reason = "it belongs to feed 'h'; use another file to watch other feeds"
    expectEqual(failure?.lines, ["cannot resume from \(path): \(reason)"])
  }

  @Test(arguments: [
    "nonsense", "[]", "{}", "{\"epoch\":\"e\"}", "{\"epoch\":\"e\",\"revision\":-1}",
    "{\"epoch\":1,\"revision\":1}", "{\"epoch\":\"e\",\"revision\":1.5}", "{\"epoch\":\"e\",\"revision\":1",
  ])
  func otherContentsAreRefusedAndKept(text: String) throws {
    try write(text)
    let failure = #expect(throws: Failure.self) { try SinceFile(path: path, feeds: ["f"]) }
    expectEqual(failure?.status, .usage)
    let lines = try require(failure?.lines)
    expectEqual(lines.count, 1)
    expect(lines[0].hasPrefix("cannot resume from \(path): it is not a file of --since-file"))
    try expectEqual(contents(), text)
  }

  @Test func fileOfAnotherFeedIsRefused() throws {
    try write("{\"feed\":\"g\",\"epoch\":\"e\",\"revision\":1}")
    #expect(throws: Failure.self) { try SinceFile(path: path, feeds: ["f"]) }
    // A file without the name of a feed is accepted.
    try write(" {\"epoch\":\"e\", \"revision\":1e3} ")
    try expectEqual(SinceFile(path: path, feeds: ["f"]).positions, ["f": FeedPosition(epoch: "e", revision: 1000)])
    // It cannot belong to several.
    #expect(throws: Failure.self) { try SinceFile(path: path, feeds: ["f", "g"]) }
  }

  @Test func unwritableFileIsAnError() {
    let absent = directory.file("absent")
    for (path, reason) in [
      ("\(absent)/since", "no such file or directory; create the directory \(absent)"),
      (directory.path + "/", "is a directory; pass the path of a file"),
    ] {
      let failure = #expect(throws: Failure.self) { try SinceFile(path: path, feeds: ["f"]) }
      expectEqual(failure?.status, .usage)
      expectEqual(failure?.lines, ["cannot write \(path): \(reason)"])
    }
  }

  /// Two sections: one with a row of each kind of print, and one without rows.
  private func rows(_ prints: [RowPrint]) -> SavedRows {
    var list = ChunkedList<Row>()
    list.append(contentsOf: prints.map { Row(element: $0.text) })
    return SavedRows(
      sections: [SectionSummary(name: "f/a \"b\"", count: prints.count), SectionSummary(name: "f/rest", count: 0)],
      prints: [.init(name: "f/a \"b\"", rows: list), .init(name: "f/rest", rows: ChunkedList())])
  }

  @Test func rowsAreReadBack() throws {
    let prints = [
      RowPrint(digest: 0, id: nil), RowPrint(digest: .max, id: utf8("1e3")),
      RowPrint(digest: 0x1234, id: utf8("\"a,false]\\\"\"")), RowPrint(digest: 7, id: utf8("\"k\""), isAccepted: false),
    ]
    var file = try SinceFile(path: path, feeds: ["f"])
    try file.save(["f": state("e", 3, rows: rows(prints))])
    let found = try require(try SinceFile(path: path, feeds: ["f"]).states["f"]?.rows)
    expectEqual(
      found.sections, [SectionSummary(name: "f/a \"b\"", count: 4), SectionSummary(name: "f/rest", count: 0)])
    expectEqual(found.prints?.map { $0.rows.map { RowPrint($0.element) } }, [prints, []])
    expectEqual(found.prints?.map(\.name), ["f/a \"b\"", "f/rest"])
  }

  @Test func rowsBeyondTheBoundAreLeftOut() throws {
    let print = RowPrint(digest: 1, id: nil)
    var file = try SinceFile(path: path, feeds: ["f"])
    try file.save(["f": state("e", 1, rows: rows(Array(repeating: print, count: SinceFile.maxRows)))])
    try expect(SinceFile(path: path, feeds: ["f"]).states["f"]?.rows?.prints != nil)
    try file.save(["f": state("e", 2, rows: rows(Array(repeating: print, count: SinceFile.maxRows + 1)))])
    let counted = try require(try SinceFile(path: path, feeds: ["f"]).states["f"]?.rows)
    expect(counted.prints == nil && counted.sections[0].count == SinceFile.maxRows + 1)
    let long = RowPrint(digest: 1, id: utf8("\"\(String(repeating: "i", count: SinceFile.maxBytes))\""))
    try file.save(["f": state("e", 3, rows: rows([long]))])
    try expect(SinceFile(path: path, feeds: ["f"]).states["f"]?.rows?.prints == nil)
  }

  /// Sections by value with long names, of one row each.
  private func longSections(_ count: Int, of print: RowPrint) -> SavedRows {
    let keys = (0..<count).map { "\"\($0)\(String(repeating: "k", count: 900))\"" }
    var row = ChunkedList<Row>()
    row.append(contentsOf: [Row(element: print.text)])
    return SavedRows(
      sections: keys.map { SectionSummary(name: "f/\($0)", key: utf8($0), count: 1) },
      prints: keys.map { .init(name: "f/\($0)", key: utf8($0), rows: row) })
  }

  /// Names count with the prints, so that the file never becomes longer than what is read of it.
  @Test func sectionsBeyondTheBoundAreLeftOut() throws {
    let print = RowPrint(digest: 1, id: utf8("1"))
    var file = try SinceFile(path: path, feeds: ["f"])
    try file.save(["f": state("e", 1, rows: longSections(500, of: print))])
    let few = try require(try SinceFile(path: path, feeds: ["f"]).states["f"]?.rows)
    expectEqual(few.sections, longSections(500, of: print).sections)
    expectEqual(few.prints?.map { $0.rows.map { RowPrint($0.element) } }, Array(repeating: [print], count: 500))
    // The names of 565 sections have less than 1 MiB, and more with the prints.
    try file.save(["f": state("e", 2, rows: longSections(565, of: print))])
    let named = try require(try SinceFile(path: path, feeds: ["f"]).states["f"]?.rows)
    expectEqual(named.sections, longSections(565, of: print).sections)
    expect(named.prints == nil)
    try file.save(["f": state("e", 3, rows: longSections(5000, of: print))])
    try expectEqual(contents(), "{\"feed\":\"f\",\"epoch\":\"e\",\"revision\":3}\n")
    try expectEqual(SinceFile(path: path, feeds: ["f"]).positions, ["f": FeedPosition(epoch: "e", revision: 3)])
  }

  /// A position is used although its rows are not.
  @Test(arguments: [
    "7", "[1]", #"[{"name":"f"}]"#, #"[{"name":"f","count":1,"rows":[]}]"#, #"[{"name":"f","count":1,"rows":["x"]}]"#,
    #"[{"name":"f","count":1,"rows":[["0123456789abcdeg",1]]}]"#,
  ])
  func otherRowsAreIgnored(sections: String) throws {
    try write("{\"epoch\":\"e\",\"revision\":1,\"sections\":\(sections)}")
    let state = try SinceFile(path: path, feeds: ["f"]).states["f"]
    expectEqual(state?.position, FeedPosition(epoch: "e", revision: 1))
    expect(state?.rows == nil)
  }
}

extension SinceFile {
  fileprivate var positions: [String: FeedPosition] { states.mapValues(\.position) }
}
