import FeedChange
import TestSupport
import Testing

@testable import FeedModel

/// Windows of lists, and keys of sorted views.
struct ViewTests {
  private static func path(_ row: Int) -> IndexPath { IndexPath(section: 0, row: UInt32(row)) }

  /// For all short lists, all windows and all changes of one or two rows, the derived change leads from one window to the other.
  @Test func windowsFollowEveryChangeOfShortLists() throws {
    for length in 0...4 {
      for deleted in 0..<(1 << length) where deleted.nonzeroBitCount <= 2 {
        for added in [[], [0], [1], [0, 1], [0, 2], [2, 3]] {
          let before = Array(0..<length)
          let gone = before.filter { deleted >> $0 & 1 == 1 }
          let come = added.filter { $0 <= length - gone.count + 1 }
          for isMove in [false, true] where !isMove || !gone.isEmpty && !come.isEmpty {
            try check(before, gone, come, isMove: isMove)
          }
        }
      }
    }
  }

  private func check(_ before: [Int], _ gone: [Int], _ come: [Int], isMove: Bool) throws {
    var after = before.filter { !gone.contains($0) }
    for (place, row) in come.enumerated() {
      guard row <= after.count else { return }
      after.insert(isMove && place == 0 ? gone[0] : 100 + place, at: row)
    }
    var whole = Change(deleted: gone.map(Self.path), added: come.map(Self.path))
    if isMove { whole.moves = [Move(deleted: 0, added: 0, keepsElement: true)] }
    for offset in 0...3 {
      for limit in [1, 2, 3, nil] as [Int?] {
        let window = ViewWindow(offset: offset, limit: limit)
        let (old, new) = (before[window.range(of: before.count)], after[window.range(of: after.count)])
        var change = Change()
        window.follow(whole, before: before.count, after: after.count, Pace(), into: &change)
        var rows = [Array(old)]
        try TestSupport.apply(change, to: &rows, elements: change.added.map { Array(new)[Int($0.row)] })
        expectEqual(rows[0], Array(new), "\(before) to \(after), \(window): \(change)")
        // Rows in both windows are not deleted, unless they move.
        let kept = Set(old).intersection(new).count
        expectEqual(old.count - change.deleted.count + change.moves.count, kept, "\(before) to \(after), \(window)")
      }
    }
  }

  /// Keys whose terms find the same long value end before the last term. Rows with equal keys are in the order of the source.
  @Test func longKeysOfRepeatedValuesEnd() throws {
    let terms = Array(repeating: #"{"by":"$.s"}"#, count: 4) + [#"{"by":"$.p"}"#]
    let view = #"{"feed":"v","kind":"view","of":"c","sort":[\#(terms.joined(separator: ","))]}"#
    for (length, isDecided) in [(10, true), (2000, false)] {
      let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#, view)
      let text = String(repeating: "x", count: length)
      let elements = [(1, 9), (2, 5)].map { id, p in #"{"id":\#(id),"s":"\#(text)","p":\#(p)}"# }
      for element in elements { try sample.commit { try sample.update("c", element) } }
      try expectEqual(sample.rows("v"), [isDecided ? elements.reversed() : elements], "\(length)")
    }
  }

  @Test func equalAndLongKeysKeepTheOrderOfTheSource() throws {
    let sample = try CatalogSample(
      #"{"feed":"c","kind":"collection"}"#,
      #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.name"}]}"#)
    try sample.commit {
      for (id, name) in [(1, "the same long name"), (2, "the same long b"), (3, "the same long name"), (4, "a")] {
        try sample.update("c", #"{"id":\#(id),"name":"\#(name)"}"#)
      }
    }
    func ids() throws -> [Character] { try sample.rows("v")[0].map { $0[$0.index($0.startIndex, offsetBy: 6)] } }
    try expectEqual(ids(), ["4", "2", "1", "3"])
    try sample.commit { try sample.update("c", #"{"id":4,"name":"the same long name"}"#) }
    try expectEqual(ids(), ["2", "1", "3", "4"])
  }
}
