import TestSupport
import Testing

@testable import FeedModel

/// Snapshots read while the tree changes, compared with copies made at the same moment as the snapshot.
struct PositionSnapshotTests {
  /// A snapshot that is being read, and its expected items.
  private struct Reading {
    let snapshot: PositionSnapshot
    let expected: [UInt]
    var read: [UInt] = []

    /// Reads up to `max` items, and none after one that is a multiple of `stop`.
    mutating func advance(_ max: Int, _ captures: Captures, stop: UInt = .max) -> Int {
      var values: [UInt] = []
      let count = snapshot.next(max: max) { payload in
        expect((captures.held[payload] ?? 0) > 0)
        values.append(payload)
        return payload % stop == 0
      }
      expect(count == values.count && count <= max && values.dropLast().allSatisfy { $0 % stop > 0 })
      let isStopped = values.last.map { $0 % stop == 0 } ?? false
      expect(isStopped || count == min(max, expected.count - read.count))
      read += values
      expect(snapshot.position == read.count && snapshot.count == expected.count)
      return count
    }

    /// Passes over items. They count as read.
    mutating func skip(_ max: Int) -> Int {
      let count = snapshot.skip(max: max)
      expectEqual(count, min(max, expected.count - read.count))
      read += expected[read.count..<read.count + count]
      expectEqual(snapshot.position, read.count)
      return count
    }
  }

  private func mutate(_ model: inout TreeModel, _ captures: Captures, _ random: inout SeededRandom, _ value: Int) {
    let count = model.items.count
    switch Int.random(in: 0..<9, using: &random) {
    case 0...2,
      _ where count == 0:
      let row = Int.random(in: 0...count, using: &random)
      model.insert(at: row, key: UInt64(value))
      captures.elements[model.items[row]] = value
    case 3, 4:
      let row = Int.random(in: 0..<count, using: &random)
      let item = model.items[row]
      model.remove(at: row)
      captures.elements[item] = nil
    case 5:
      let row = Int.random(in: 0..<count, using: &random)
      let old = model.items[row]
      model.replace(at: row, key: UInt64(value))
      captures.elements[old] = nil
      captures.elements[model.items[row]] = value
    default:
      let item = model.items[Int.random(in: 0..<count, using: &random)]
      model.tree.contentWillChange(of: item)
      captures.elements[item] = value
    }
  }

  @Test(arguments: UInt64(1)...40)
  func manySnapshotsOfAChangingTree(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let captures = Captures()
    var model = TreeModel(keyed: seed % 2 == 0, leafLimit: 4 + Int(seed % 4), innerLimit: 4)
    var value = 0
    for _ in 0..<Int(seed) * 4 {
      value += 1
      model.insert(at: model.items.count)
      captures.elements[model.items[model.items.count - 1]] = value
    }
    var readings: [Reading] = []
    for step in 0..<600 {
      value += 1
      switch Int.random(in: 0..<12, using: &random) {
      case 0 where readings.count < 4:
        let end = Int.random(in: 0...model.items.count, using: &random)
        let rows = step % 3 == 0 ? 0..<model.items.count : Int.random(in: 0...end, using: &random)..<end
        let expected = captures.values(Array(model.items[rows]))
        readings.append(Reading(snapshot: captures.snapshot(of: model.tree, rows: rows), expected: expected))
      case 1,
        2 where !readings.isEmpty:
        if readings.isEmpty { continue }
        let index = Int.random(in: 0..<readings.count, using: &random)
        let most = Int.random(in: 0...9, using: &random)
        let count = step % 5 == 0 ? readings[index].skip(most) : readings[index].advance(most, captures, stop: 3)
        let reading = readings[index]
        expectEqual(reading.read, Array(reading.expected.prefix(reading.read.count)), "seed \(seed) step \(step)")
        if reading.read.count == reading.expected.count || count == 0 && step % 7 == 0 { readings.remove(at: index) }
      case 3 where step % 19 == 0:
        model.removeAll()
        captures.elements = [:]
      case 4 where step % 11 == 0:
        readings.last?.snapshot.cancel()
        if !readings.isEmpty { readings.removeLast() }
      default:
        mutate(&model, captures, &random, value)
      }
    }
    for index in readings.indices {
      while readings[index].advance(7, captures, stop: 5) > 0 {}
      expectEqual(readings[index].read, readings[index].expected, "seed \(seed)")
    }
    readings = []
    expect(!model.tree.hasSnapshots && captures.held.isEmpty, "seed \(seed)")
    expect(model.agrees(), "seed \(seed)")
  }

  private func filled(_ count: Int, _ captures: Captures) -> TreeModel {
    var model = TreeModel(leafLimit: 4, innerLimit: 4)
    for index in 0..<count {
      model.insert(at: index)
      captures.elements[model.items[index]] = index + 1
    }
    return model
  }

  /// After any number of rows is read, each row is changed in each way. The rest is read as it was.
  @Test func everyMutationAtEveryPosition() {
    for position in 0...13 {
      for row in 0..<13 {
        for (way, skips) in (0..<4).flatMap({ [($0, false), ($0, true)] }) {
          let captures = Captures()
          var model = filled(13, captures)
          var reading = Reading(snapshot: captures.snapshot(of: model.tree), expected: captures.values(model.items))
          _ = skips ? reading.skip(position) : reading.advance(position, captures)
          let item = model.items[row]
          switch way {
          case 0: model.insert(at: row)
          case 1: model.remove(at: row)
          case 2: model.replace(at: row)
          default: model.tree.contentWillChange(of: item)
          }
          captures.elements[way == 0 ? model.items[row] : item] = 99
          while reading.advance(3, captures, stop: 4) > 0 { if skips { _ = reading.skip(3) } }
          expectEqual(reading.read, reading.expected, "position \(position), row \(row), way \(way)")
          expect(captures.held.isEmpty)
        }
      }
    }
  }

  /// After each mutation of a row, each range reads its rows as they were.
  @Test func everyRange() {
    for end in 0...13 {
      for start in 0...end {
        for row in 0..<13 {
          let captures = Captures()
          var model = filled(13, captures)
          let rows = start..<end
          var reading = Reading(
            snapshot: captures.snapshot(of: model.tree, rows: rows),
            expected: captures.values(Array(model.items[rows])))
          _ = reading.advance(rows.count / 2, captures)
          if row % 2 == 0 { model.remove(at: row) } else { model.insert(at: row) }
          while reading.advance(3, captures) > 0 {}
          expectEqual(reading.read, reading.expected, "rows \(rows), row \(row)")
          expect(captures.held.isEmpty && !model.tree.hasSnapshots)
        }
      }
    }
  }

  @Test func captureIsLazy() {
    let captures = Captures()
    var model = filled(40, captures)
    let snapshot = captures.snapshot(of: model.tree)
    expect(captures.held.isEmpty && model.tree.hasSnapshots)
    model.remove(at: 20)
    expect(!captures.held.isEmpty && captures.held.count <= 8)
    snapshot.cancel()
    expect(captures.held.isEmpty && !model.tree.hasSnapshots)
    expectEqual(snapshot.next(max: 5) { _ in Issue.record("a cancelled snapshot has nothing more") }, 0)
  }

  @Test func releasedSnapshotReleasesItsCaptures() {
    let captures = Captures()
    var model = filled(40, captures)
    var snapshot: PositionSnapshot? = captures.snapshot(of: model.tree)
    _ = snapshot?.next(max: 6) { _ in }
    for _ in 0..<40 { model.remove(at: 0) }
    expectEqual(captures.held.count, 34)
    snapshot = nil
    expect(captures.held.isEmpty && !model.tree.hasSnapshots)
  }

  @Test func snapshotsShareWhatTheyCapture() {
    let captures = Captures()
    var model = filled(40, captures)
    let expected = captures.values(model.items)
    let snapshots = (0..<4).map { _ in captures.snapshot(of: model.tree) }
    _ = snapshots[0].next(max: 1) { _ in }
    for _ in 0..<40 { model.remove(at: 0) }
    // The first snapshot captures the rest of a leaf of which the others capture all.
    expectEqual(captures.held.values.max(), 2)
    snapshots[1].cancel()
    for (snapshot, first) in [(snapshots[0], 1), (snapshots[2], 0), (snapshots[3], 0)] {
      var values: [UInt] = []
      while snapshot.next(max: 7, { values.append($0) }) > 0 {}
      expectEqual(values, Array(expected[first...]))
    }
    expect(captures.held.isEmpty && !model.tree.hasSnapshots)
  }

  @Test func snapshotRetainsItsTree() {
    let captures = Captures()
    var model: TreeModel? = filled(20, captures)
    let snapshot = model.map { captures.snapshot(of: $0.tree) }
    model = nil
    var sum: UInt = 0
    expectEqual(snapshot?.next(max: 100) { sum += $0 }, 20)
    expectEqual(sum, 210)
  }

  @Test func emptySnapshot() {
    let captures = Captures()
    let tree = PositionTree(keyed: false)
    let snapshot = captures.snapshot(of: tree)
    expect(!tree.hasSnapshots && snapshot.count == 0 && snapshot.next(max: 1) { _ in } == 0)
  }
}

/// The elements of the handles of a tree, and the captures of snapshots.
final class Captures {
  /// The current value of each handle.
  var elements: [UInt32: Int] = [:]
  /// The number of unreleased captures of each value.
  private(set) var held: [UInt: Int] = [:]

  /// Returns a snapshot of `rows`, or of all rows.
  func snapshot(of tree: PositionTree, rows: Range<Int>? = nil) -> PositionSnapshot {
    tree.makeSnapshot(
      of: rows ?? 0..<tree.count,
      capture: { item in
        let payload = UInt(self.elements[item] ?? 0)
        self.held[payload, default: 0] += 1
        return payload
      },
      release: { payload in
        let count = (self.held[payload] ?? 0) - 1
        self.held[payload] = count == 0 ? nil : count
      })
  }

  /// The current values of `items`, which a snapshot made now must read later.
  func values(_ items: [UInt32]) -> [UInt] { items.map { UInt(elements[$0] ?? 0) } }
}
