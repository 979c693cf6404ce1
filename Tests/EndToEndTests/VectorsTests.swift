import FeedChange
import FeedModel
import FeedWire
import Testing

/// The language-neutral vectors against the model's own functions.
@Suite struct VectorsTests {
  @Test(arguments: try VectorNode.cases("change"))
  func change(_ vector: VectorNode) throws {
    let before = try vector.member("before")
    var rows = try before.rows()
    var names = try before.names()
    let change = try vector.member("change").change()
    try apply(change, to: &rows, elements: vector.member("elements").texts())
    change.applySections(to: &names) { $0.name }
    #expect(try rows == vector.member("after").rows())
    #expect(try names == vector.member("after").names())
  }

  @Test(arguments: try VectorNode.cases("compose"))
  func compose(_ vector: VectorNode) throws {
    var rows = try vector.member("before").rows()
    let first = try step(vector.member("first"), from: rows)
    try apply(first, to: &rows, elements: vector.member("first").member("elements").texts())
    let second = try step(vector.member("second"), from: rows)
    let composed = try vector.member("composed")
    let change = FeedChange.compose(first, second).normalizingMoves()
    #expect(try change == composed.member("change").change())

    rows = try vector.member("before").rows()
    try apply(change, to: &rows, elements: composed.member("elements").texts())
    #expect(try rows == vector.member("after").rows())
  }

  /// The change of a step, with the moves whose element is the same as in `rows` marked.
  private func step(_ vector: VectorNode, from rows: [[String]]) throws -> Change {
    var change = try vector.member("change").change()
    let elements = try vector.member("elements").texts()
    for place in change.moves.indices {
      let old = change.deleted[Int(change.moves[place].deleted)]
      let element = elements[Int(change.moves[place].added)]
      change.moves[place].keepsElement = rows[Int(old.section)][Int(old.row)] == element
    }
    return change
  }

  @Test(arguments: try VectorNode.cases("compose"))
  func oneAfterTheOther(_ vector: VectorNode) throws {
    var rows = try vector.member("before").rows()
    for step in try [vector.member("first"), vector.member("second")] {
      try apply(step.member("change").change(), to: &rows, elements: step.member("elements").texts())
    }
    #expect(try rows == vector.member("after").rows())
  }

  @Test(arguments: try VectorNode.cases("digest"))
  func digest(_ vector: VectorNode) throws {
    let rows = try vector.member("sections").rows()
    let text = "[" + rows.map { "[" + $0.joined(separator: ",") + "]" }.joined(separator: ",") + "]"
    #expect(try text == vector.member("text").string)
    var crc = CRC32()
    Array(text.utf8).withUnsafeBytes { crc.update($0) }
    #expect(try crc.hex8 == vector.member("digest").string)
  }
}
