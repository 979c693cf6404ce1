import FeedChange
import FeedModel
import FeedWire
import TestSupport
import Testing

/// The vectors of the protocol, run against the functions that daemon and client share.
@Suite("Vectors of changes, composition and digests") struct VectorsTests {
  @Test(arguments: try JSONValue.cases("change"))
  func change(_ vector: JSONValue) throws {
    let before = try vector.member("before")
    var rows = try before.parsedRows()
    var names = try before.names()
    let change = try vector.member("change").parsedChange()
    try apply(change, to: &rows, elements: vector.member("elements").texts())
    change.applySections(to: &names) { $0.name }
    try expectEqual(rows, vector.member("after").parsedRows())
    try expectEqual(names, vector.member("after").names())
  }

  @Test(arguments: try JSONValue.cases("compose"))
  func compose(_ vector: JSONValue) throws {
    var rows = try vector.member("before").parsedRows()
    let first = try step(vector.member("first"), from: rows)
    try apply(first, to: &rows, elements: vector.member("first").member("elements").texts())
    let second = try step(vector.member("second"), from: rows)
    let composed = try vector.member("composed")
    let change = FeedChange.compose(first, second).normalizingMoves()
    try expectEqual(change, composed.member("change").parsedChange())

    rows = try vector.member("before").parsedRows()
    try apply(change, to: &rows, elements: composed.member("elements").texts())
    try expectEqual(rows, vector.member("after").parsedRows())
  }

  /// The change of a step, with the moves whose element is the same as in `rows` marked.
  private func step(_ vector: JSONValue, from rows: [[String]]) throws -> Change {
    var change = try vector.member("change").parsedChange()
    let elements = try vector.member("elements").texts()
    for place in change.moves.indices {
      let old = change.deleted[Int(change.moves[place].deleted)]
      let element = elements[Int(change.moves[place].added)]
      change.moves[place].keepsElement = rows[Int(old.section)][Int(old.row)] == element
    }
    return change
  }

  @Test(arguments: try JSONValue.cases("compose"))
  func firstThenSecond(_ vector: JSONValue) throws {
    var rows = try vector.member("before").parsedRows()
    for step in try [vector.member("first"), vector.member("second")] {
      try apply(step.member("change").parsedChange(), to: &rows, elements: step.member("elements").texts())
    }
    try expectEqual(rows, vector.member("after").parsedRows())
  }

  @Test(arguments: try JSONValue.cases("digest"))
  func digest(_ vector: JSONValue) throws {
    let rows = try vector.member("sections").parsedRows()
    let text = "[" + rows.map { "[" + $0.joined(separator: ",") + "]" }.joined(separator: ",") + "]"
    try expectEqual(text, vector.member("text").string)
    var crc = CRC32()
    Array(text.utf8).withUnsafeBytes { crc.update($0) }
    try expectEqual(crc.hex8, vector.member("digest").string)
  }
}

/// Changes and states in the form of the vectors.
extension JSONValue {
  /// Returns the change that this object describes.
  func parsedChange() throws -> Change {
    Change(
      deleted: try member("deleted").paths(), added: try member("added").paths(),
      updated: try member("updated").paths(),
      moves: try self["moves"].elements.map { Move(deleted: try $0.number(0), added: try $0.number(1)) },
      sectionsDeleted: try self["sections"]["deleted"].elements.map { try $0.number() },
      sectionsAdded: try self["sections"]["added"].elements.map {
        SectionAddition(at: try $0.member("at").number(), name: try require(try $0.member("name").string))
      })
  }

  /// Returns the texts of the elements of each section of this state.
  func parsedRows() throws -> [[String]] {
    try elements.map { try $0.member("elements").elements.map(\.text) }
  }

  /// Returns the names of the sections of this state.
  func names() throws -> [String] {
    try elements.map { try require(try $0.member("name").string) }
  }

  /// Returns the texts of the elements of this array.
  func texts() -> [String] { elements.map(\.text) }

  private func paths() throws -> [IndexPath] {
    try elements.map { IndexPath(section: try $0.number(0), row: try $0.number(1)) }
  }

  private func number(_ place: Int) throws -> UInt32 { try elements[place].number() }

  private func number() throws -> UInt32 { UInt32(try require(int)) }
}

extension JSONValue: CustomTestStringConvertible {
  package var testDescription: String { self["name"].string ?? text }
}
