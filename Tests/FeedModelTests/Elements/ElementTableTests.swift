import FeedJSON
import TestSupport
import Testing

@testable import FeedModel

/// The table of elements, compared with arrays.
struct ElementTableTests {
  static func text(_ text: String, identity: String = "") -> ElementText {
    let (identity, bytes) = (Array(identity.utf8), Array(text.utf8))
    let made = identity.withUnsafeBytes { identity in
      bytes.withUnsafeBytes { bytes in
        ElementText(identity: identity, keys: UnsafeRawBufferPointer(start: nil, count: 0), text: bytes, type: 0..<0)
      }
    }
    return made!
  }

  private struct Living: Equatable {
    let handle: UInt32
    var text: String
    var at: UInt64
    let arrival: Int
  }

  @Test(arguments: 1...6, [false, true]) func randomHistories(seed: UInt64, keepsOrder: Bool) {
    var random = SeededRandom(seed: seed)
    let table = ElementTable()
    if keepsOrder { table.keepOrder() }
    /// The elements in the order of change.
    var living: [Living] = []
    var arrivals = 0
    for step in 0..<600 {
      let text = "\"\(step)\(String(repeating: "x", count: Int.random(in: 0..<9, using: &random)))\""
      let now = Instant(nanoseconds: UInt64(step))
      let place = living.indices.randomElement(using: &random)
      switch (Int.random(in: 0..<10, using: &random), place) {
      case (0..<4, _), (_, nil):
        let handle = table.add(Self.text(text), at: now)
        expect(!living.contains { $0.handle == handle }, "seed \(seed): a handle in use was returned")
        living.append(Living(handle: handle, text: text, at: now.nanoseconds, arrival: arrivals))
        arrivals += 1
      case (4, let place?):
        table.retire(living[place].handle)
        table.free(living[place].handle)
        living.remove(at: place)
      case (5, let place?):
        // Removes the element and restores it at its old position.
        let newer = place + 1 < living.count ? living[place + 1].handle : ElementTable.none
        table.retire(living[place].handle)
        expectEqual(String(decoding: table.text(of: living[place].handle).text, as: UTF8.self), living[place].text)
        var others = Set<UInt32>()
        table.forEach { others.insert($0) }
        expectEqual(others, Set(living.map(\.handle)).subtracting([living[place].handle]))
        table.revive(living[place].handle, before: keepsOrder ? newer : ElementTable.none)
      case (6..<8, let place?):
        let version = Self.text(text)
        version.changedAt = now
        table.exchange(living[place].handle, version).release()
        (living[place].text, living[place].at) = (text, now.nanoseconds)
      case (_, let place?):
        var moved = living.remove(at: place)
        let target = Int.random(in: 0...living.count, using: &random)
        let newer = target < living.count ? living[target].handle : ElementTable.none
        table.reorder(moved.handle, before: newer, changedAt: now)
        moved.at = now.nanoseconds
        living.insert(moved, at: target)
      }
      check(table, living, keepsOrder: keepsOrder, seed)
    }
    table.keepOrder()
    let sorted = living.sorted { ($0.at, $0.arrival) < ($1.at, $1.arrival) }
    check(table, sorted, keepsOrder: true, seed)
    check(table.copy(Pace()), sorted, keepsOrder: true, seed)
  }

  private func check(_ table: ElementTable, _ living: [Living], keepsOrder: Bool, _ seed: UInt64) {
    var handles: [UInt32] = []
    table.forEach { handles.append($0) }
    let expected = living.map(\.handle)
    expectEqual(handles, (keepsOrder ? expected : expected.sorted()), "seed \(seed)")
    expectEqual(table.oldest, (keepsOrder ? expected.first : nil) ?? ElementTable.none)
    expectEqual(table.longestUnchanged(3), (keepsOrder ? Array(expected.prefix(3)) : []))
    expectEqual(table.count, living.count)
    expectEqual(table.bytes, living.reduce(0) { $0 + table.text(of: $1.handle).footprint })
    for element in living {
      expectEqual(String(decoding: table.text(of: element.handle).text, as: UTF8.self), element.text)
      expectEqual(table.text(of: element.handle).changedAt.nanoseconds, element.at)
    }
    expectEqual(table.inOrderOfArrival(), living.sorted { $0.arrival < $1.arrival }.map(\.handle))
  }

  @Test func sortByChangeOrdersByTime() {
    let table = ElementTable()
    table.keepOrder()
    let times: [UInt64] = [5, 3, 9, 1, 7]
    let handles = times.map { table.add(Self.text("1"), at: Instant(nanoseconds: $0)) }
    table.sortByChange()
    var order: [UInt32] = []
    table.forEach { order.append($0) }
    expectEqual(order, [3, 1, 0, 4, 2].map { handles[$0] })
  }
}

/// The index of identities, with few hashes so that they collide, compared with a dictionary.
struct IdentityIndexTests {
  @Test(arguments: 1...6, [1, 3, 1000]) func randomHistories(seed: UInt64, hashes: Int) {
    var random = SeededRandom(seed: seed)
    let table = ElementTable()
    var index = IdentityIndex()
    var known: [String: UInt32] = [:]
    func hash(_ name: String) -> UInt32 {
      UInt32(truncatingIfNeeded: name.utf8.reduce(0) { $0 &* 31 &+ Int($1) } % hashes) &* 0x1000_0001
    }
    for _ in 0..<500 {
      let name = "n\(Int.random(in: 0..<60, using: &random))"
      if let handle = known[name] {
        if Bool.random(using: &random) {
          index.remove(handle, hash: hash(name))
          index.remove(handle, hash: hash(name))
          table.retire(handle)
          table.free(handle)
          known[name] = nil
        }
      } else {
        let handle = table.add(ElementTableTests.text("1", identity: name), at: Instant(nanoseconds: 0))
        index.insert(handle, hash: hash(name))
        known[name] = handle
      }
      expectEqual(index.count, known.count)
      for number in 0..<60 {
        let name = "n\(number)"
        let found = Array(name.utf8).withUnsafeBytes { index.find($0, hash: hash(name), in: table) }
        expectEqual(found, known[name], "seed \(seed)")
      }
    }
  }

  @Test func growsInSmallSteps() {
    let table = ElementTable()
    var index = IdentityIndex()
    func hash(_ number: Int) -> UInt32 { UInt32(truncatingIfNeeded: number) &* 0x9E37_79B1 }
    for number in 0..<20_000 {
      index.insert(
        table.add(ElementTableTests.text("1", identity: "\(number)"), at: Instant(nanoseconds: 0)), hash: hash(number))
      expect(index.byteCount <= max(128, (number + 1) * 13 + 64), "\(number)")
    }
    for number in 0..<20_000 {
      let found = Array("\(number)".utf8).withUnsafeBytes { index.find($0, hash: hash(number), in: table) }
      expectEqual(found, UInt32(number))
    }
  }

  /// Identities of equal value have equal bytes. A string and a number never do.
  @Test func equalIdentitiesHaveEqualBytes() {
    func bytes(_ text: String) -> [UInt8]? {
      withView(text) { view in
        var buffer = ByteBuffer()
        return Identity.append(view, to: &buffer) ? Array(buffer.bytes) : nil
      }
    }
    let groups = [
      ["1", "1.0", "10e-1", "1e0"], ["0", "-0", "0.0", "0e99"], ["\"a\"", "\"\\u0061\""], ["\"1\""], ["-1"], ["1e400"],
      ["1.0000000000000000000000001"], ["9007199254740993"], ["9007199254740992", "9007199254740992.0"], ["\"\""],
    ]
    for (place, group) in groups.enumerated() {
      for text in group {
        expectEqual(bytes(text), bytes(group[0]), "\(text)")
        for other in groups.indices where other != place { expect(bytes(text) != bytes(groups[other][0]), "\(text)") }
      }
    }
    for text in ["null", "true", "false", "[]", "{}", "[1]"] { expectEqual(bytes(text), nil, "\(text)") }
  }
}
