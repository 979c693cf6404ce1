import FeedChange
import FeedJSON
import TestSupport
import Testing

@testable import FeedWire

/// Writing changes, compared with examples and with a reader.
struct ChangeTextTests {
  private func text(_ change: Change) -> String {
    var buffer = ByteBuffer()
    buffer.append(UInt8(ascii: "{"))
    buffer.append(change)
    buffer.append(UInt8(ascii: "}"))
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// The texts are compared byte for byte: they have no white space and a fixed order of members.
  @Test func examples() {
    expectEqual(text(Change()), #"{"deleted":[],"added":[],"updated":[]}"#)
    let path = { (section: UInt32, row: UInt32) in IndexPath(section: section, row: row) }
    expectEqual(
      text(Change(deleted: [path(0, 3)], added: [path(1, 0)])), #"{"deleted":[[0,3]],"added":[[1,0]],"updated":[]}"#)
    expectEqual(
      text(
        Change(
          deleted: [path(0, 3)], added: [path(1, 0), path(.max, .max)], updated: [path(0, 0)],
          moves: [Move(deleted: 0, added: 1)], sectionsDeleted: [2],
          sectionsAdded: [SectionAddition(at: 1, name: "inbox/\"u\"")])),
      #"{"deleted":[[0,3]],"added":[[1,0],[4294967295,4294967295]],"updated":[[0,0]],"sections":{"deleted":[2],"added":[{"at":1,"name":"inbox/\"u\""}]},"moves":[[0,1]]}"#
    )
    expectEqual(
      text(Change(sectionsDeleted: [0])),
      #"{"deleted":[],"added":[],"updated":[],"sections":{"deleted":[0],"added":[]}}"#)
  }

  @Test func changeOfOneRowIsWrittenLikeItsLists() {
    let (path, other) = (IndexPath(section: 0, row: 7), IndexPath(section: .max, row: .max))
    for row in [ChangeOfOne.updated(path), .added(other), .deleted(path), .moved(from: path, to: other)] {
      var buffer = ByteBuffer()
      buffer.append(UInt8(ascii: "{"))
      buffer.append(row)
      buffer.append(UInt8(ascii: "}"))
      expectEqual(String(decoding: buffer.bytes, as: UTF8.self), text(Change(row)))
    }
  }

  @Test(arguments: 1...4) func randomChangesAreReadBack(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    func rows() -> [IndexPath] {
      let rows = (0..<Int.random(in: 0..<5, using: &random)).map { _ in
        IndexPath(section: UInt32.random(in: 0..<3, using: &random), row: UInt32.random(in: 0...(.max), using: &random))
      }
      return Set(rows).sorted()
    }
    for _ in 0..<100 {
      var change = Change(deleted: rows(), added: rows(), updated: rows())
      for place in 0..<min(change.deleted.count, change.added.count) {
        change.moves.append(Move(deleted: UInt32(place), added: UInt32(place)))
      }
      if Bool.random(using: &random) { change.sectionsDeleted = [1, 7] }
      if Bool.random(using: &random) { change.sectionsAdded = [SectionAddition(at: 0, name: "é\n")] }
      expectEqual(Self.read(text(change)), change, "seed \(seed)")
    }
  }

  /// Reads a change back, member by member.
  private static func read(_ text: String) -> Change? {
    var scanner = JSONScanner()
    return Array(text.utf8).withUnsafeBytes { bytes -> Change? in
      guard let view = try? scanner.scan(bytes) else { return nil }
      func numbers(_ view: JSONView) -> [UInt32] { view.elements.compactMap { $0.int.map { UInt32($0) } } }
      func pairs(_ name: StaticString) -> [[UInt32]] { view.member(name)?.elements.map(numbers) ?? [] }
      func paths(_ name: StaticString) -> [IndexPath] { pairs(name).map { IndexPath(section: $0[0], row: $0[1]) } }
      let sections = view.member("sections")
      let additions = sections?.member("added")?.elements.map { addition in
        SectionAddition(at: UInt32(addition.member("at")?.int ?? -1), name: addition.member("name")?.string ?? "")
      }
      return Change(
        deleted: paths("deleted"), added: paths("added"), updated: paths("updated"),
        moves: pairs("moves").map { Move(deleted: $0[0], added: $0[1]) },
        sectionsDeleted: sections?.member("deleted").map(numbers) ?? [], sectionsAdded: additions ?? [])
    }
  }
}
