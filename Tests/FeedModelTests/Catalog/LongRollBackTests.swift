import TestSupport
import Testing

@testable import FeedModel

/// What others read while the steps of a long commit are undone.
struct LongRollBackTests {
  /// `p` shows 20 feeds without rows, and `s` shows `p`. `q` shows the ten rows of `z`.
  private let sample: CatalogSample

  init() throws {
    sample = try CatalogSample()
    try sample.commit {
      for number in 0..<20 { try sample.define(#"{"feed":"c\#(number)","kind":"single"}"#) }
      let children = (0..<20).map { "\"c\($0)\"" }.joined(separator: ",")
      try sample.define(#"{"feed":"p","kind":"composed","children":[\#(children)]}"#)
      try sample.define(#"{"feed":"z","kind":"array"}"#)
      for (name, shown) in [("s", "p"), ("q", "z")] {
        try sample.define(#"{"feed":"\#(name)","kind":"slots","contents":{"t":"\#(shown)"},"pattern":["t"]}"#)
      }
    }
    try sample.commit { try insert("[0,1,2,3,4,5,6,7,8,9]") }
  }

  private func insert(_ elements: String) throws {
    let list = try require(try sample.feed("z").kind as? ListKind)
    try withView(elements) { try list.insert(Array($0.elements), at: nil, in: sample.catalog.commit) }
  }

  private func insertChild() throws { try sample.provider("p").insertChild("z", at: .end, in: sample.catalog) }

  /// The numbers of rows of `s` and `q`, each of which is read.
  private func counts() throws -> [Int] { try ["s", "q"].map { try sample.rows($0)[0].count } }

  /// Rolls back operations. Calls `read` at each stop at which others can read. Returns the number of stops.
  /// - Parameter steps: those that the commit is expected to make.
  private func rollBack(steps: Int, _ operations: () throws -> Void, read: @escaping () -> Void) throws -> Int {
    let commit = sample.catalog.commit
    var stops = 0
    commit.long.announce(steps: steps)
    try sample.rollBack {
      try operations()
      commit.pace.begin(units: 0) {
        stops += 1
        if commit.long.isReadable {
          commit.long.suspend()
          read()
          commit.long.resume()
        }
        return 0
      }
    }
    commit.pace.end()
    commit.long.announce(steps: 0)
    try expectEqual(counts(), [0, 10])
    return stops
  }

  /// To undo the change of many children may stop when the children are those from before. What was counted since is still cached.
  @Test func childrenAreUndoneBeforeOthersRead() throws {
    var seen: [[Int]?] = []
    let stops = try rollBack(steps: 1) {
      try insertChild()
      try expectEqual(counts(), [10, 10])
    } read: {
      seen.append(try? counts())
    }
    expect(stops > 0)
    expect(seen.allSatisfy { $0 == [0, 10] })
  }

  /// So it is when the last step on rows is undone in place.
  @Test func rowsAreUndoneBeforeOthersRead() throws {
    var seen: [[Int]?] = []
    let stops = try rollBack(steps: 1) {
      try insert("[10,11,12]")
      try expectEqual(counts(), [0, 13])
    } read: {
      seen.append(try? counts())
    }
    expect(stops >= 6)
    expect(seen.allSatisfy { $0 == [0, 10] })
  }

  /// After a change of children is undone, the rows of steps before it are undone in a copy, while others read. What is known of who may
  /// read feeds, by the version of the structure, must not be that of the children that were undone.
  @Test func othersReadTheFormerStructureWhileACopyIsUndone() throws {
    var undone: UInt64 = 0
    var seen: [(counts: [Int]?, version: UInt64)] = []
    _ = try rollBack(steps: .max) {
      try insert("[10,11,12]")
      try insertChild()
      try expectEqual(counts(), [13, 13])
      undone = sample.catalog.structureVersion
    } read: {
      seen.append((try? counts(), sample.catalog.structureVersion))
    }
    expect(seen.count >= 6)
    expect(seen.allSatisfy { $0.counts == [0, 10] && $0.version > undone })
  }
}
