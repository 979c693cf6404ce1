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
    let first = try vector.member("first").member("change").change()
    let second = try vector.member("second").member("change").change()
    let composed = try vector.member("composed")
    #expect(try FeedChange.compose(first, second) == composed.member("change").change())

    var rows = try vector.member("before").rows()
    try apply(FeedChange.compose(first, second), to: &rows, elements: composed.member("elements").texts())
    #expect(try rows == vector.member("after").rows())
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
