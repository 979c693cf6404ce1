import FeedJSON
import FeedQuery
import TestSupport
import Testing

@testable import FeedModel

/// The table of the sections by value, and the names that are read from their elements.
struct KeyedSectionTableTests {
  /// Creates an element with `"v": value` and a section key. The caller releases it.
  private func makeText(_ value: String?, descending: Bool = false) throws -> ElementText {
    var scanner = JSONScanner()
    let json = Array((value.map { #"{"v":\#($0)}"# } ?? "{}").utf8)
    return try json.withUnsafeBytes { bytes in
      var keys = ByteBuffer()
      let order = SortOrder(terms: [
        .init(path: try SingularPath(parsing: "$.v"), descending: descending, isSection: true)
      ])
      order.appendKey(of: try scanner.scan(bytes), to: &keys)
      let none = UnsafeRawBufferPointer(start: nil, count: 0)
      return try require(ElementText(identity: none, keys: keys.bytes, text: bytes, type: 0..<0))
    }
  }

  /// What the table should know of a section.
  private struct Expected {
    var id: UInt32
    var count = 0
    /// The counts before the operation and the commit; nil if the scope did not touch the section.
    var before: (operation: Int?, commit: Int?) = (nil, nil)
  }

  /// Rows have the section of their handle's tens.
  @Test(arguments: 1...6) func randomChangesOfSections(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let text = try makeText("1")
    defer { text.release() }
    let table = KeyedSectionTable()
    var sections: [Int: Expected] = [:]
    // Sections without rows that the open scopes touched, in the order in which they lost their last row.
    var emptied: (operation: [Expected], commit: [Expected]) = ([], [])
    for step in 0..<2000 {
      let value = Int.random(in: 0..<20, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        var section = sections[value] ?? Expected(id: table.make())
        section.before = (section.before.operation ?? section.count, section.before.commit ?? section.count)
        let handle = UInt32(value * 10 + section.count % 10)
        expectEqual(table.addRow(handle, to: section.id), (section.count == 0))
        expectEqual(table.section(of: handle), section.id)
        if section.count == 0 {
          let before = sections.filter { $0.key < value }.max { $0.key < $1.key }
          table.didFill(section.id, after: before?.value.id ?? KeyedSectionTable.none, first: UInt32(value * 10))
        }
        section.count += 1
        sections[value] = section
      case 4..<8:
        guard var section = sections[value] else { continue }
        section.before = (section.before.operation ?? section.count, section.before.commit ?? section.count)
        section.count -= 1
        expectEqual(table.removeRow(from: section.id), (section.count == 0))
        if section.count == 0 {
          let index = sections.count { $0.key < value }
          table.didEmpty(section.id, version: text)
          expectEqual(table.emptied(in: .operation).last?.index, index)
          emptied.operation.append(section)
          emptied.commit.append(section)
        }
        sections[value] = section.count > 0 ? section : nil
      case 8:
        table.endOperation()
        for value in sections.keys { sections[value]?.before.operation = nil }
        emptied.operation = []
      default:
        table.endOperation()
        table.endCommit()
        for value in sections.keys { sections[value]?.before = (nil, nil) }
        emptied = ([], [])
      }
      table.checkInvariants()
      let note: Comment = "seed \(seed), step \(step)"
      check(table, sections, note)
      expectEqual(table.emptied(in: .operation).map(\.id), emptied.operation.map(\.id), note)
      expectEqual(table.emptied(in: .commit).map(\.id), emptied.commit.map(\.id), note)
      for section in emptied.operation {
        expectEqual(table.rowCount(of: section.id, before: .operation), section.before.operation, note)
        expectEqual(table.rowCount(of: section.id, before: .commit), section.before.commit, note)
      }
    }
  }

  private func check(_ table: KeyedSectionTable, _ sections: [Int: Expected], _ note: Comment) {
    let present = sections.sorted { $0.key < $1.key }
    expectEqual((0..<table.count).map { table[$0] }, present.map(\.value.id), note)
    for (index, section) in present.enumerated() {
      let id = section.value.id
      expect(table.index(of: id) == index && table.first(of: id) == UInt32(section.key * 10), note)
      expectEqual(table.rowCount(of: id), section.value.count, note)
      expectEqual(table.rowCount(of: id, before: .operation), section.value.before.operation, note)
      expectEqual(table.rowCount(of: id, before: .commit), section.value.before.commit, note)
    }
  }

  /// A section whose creation is undone is not among the emptied ones, and its identifier is free after the commit. One
  /// that gets its rows again by an undo is not among them either.
  @Test func undoneStepsAreForgotten() throws {
    let text = try makeText("1")
    defer { text.release() }
    let table = KeyedSectionTable()
    table.append(1, toLast: false)
    table.didAppendAll(Pace())
    let id = table.make()
    expect(table.addRow(2, to: id))
    table.didFill(id, after: table[0], first: 2)
    expect(table.removeRow(from: table[0]))
    table.didEmpty(table[0], version: text)
    expectEqual(table.emptied(in: .commit).map(\.id), [0])
    expect(table.addRow(1, to: 0))
    table.didFill(0, after: KeyedSectionTable.none, first: 1)
    expect(table.removeRow(from: id))
    table.didEmpty(id, version: nil)
    expect(table.emptied(in: .commit).isEmpty && table.count == 1)
    table.checkInvariants()
    table.endOperation()
    table.endCommit()
    expectEqual(table.make(), id)
  }

  /// Many sections lose their rows at once.
  @Test func sectionsAreEmptiedTogether() throws {
    let text = try makeText("1")
    defer { text.release() }
    let table = KeyedSectionTable()
    for handle in 0..<UInt32(200) { table.append(handle, toLast: handle % 4 == 1) }
    table.didAppendAll(Pace())
    expect(table.count == 150 && table.rowCount(of: table[0]) == 2)
    let ids = (0..<150).map { table[$0] }
    for id in ids.reversed() where id % 3 == 1 {
      expect(table.removeRow(from: id))
      table.willEmpty(id, version: text)
    }
    table.didEmptyAll(Pace())
    table.checkInvariants()
    expectEqual((0..<table.count).map { table[$0] }, ids.filter { $0 % 3 != 1 })
    expectEqual(table.emptied(in: .operation).count, 50)
  }

  /// A list that is copied can get a little more memory than it needs, if such a piece of the heap is free.
  @Test func copiesTakeMoreRows() {
    let rows: UInt32 = 510
    func makePiece() -> [UInt8] { [UInt8](repeating: 1, count: Int(rows) * 4 + 16) }
    for _ in 0..<200 {
      let table = KeyedSectionTable()
      for handle in 0..<rows { table.append(handle, toLast: handle > 0) }
      table.didAppendAll(Pace())
      let copy = KeyedSectionTable(copying: table, Pace())
      // Every other piece is free when the copy gets its own list, and is 16 bytes longer than that.
      var pieces = (0..<32).map { _ in makePiece() }
      for place in stride(from: 0, to: pieces.count, by: 2) { pieces[place] = [] }
      expect(!copy.addRow(0, to: 0))
      for place in stride(from: 0, to: pieces.count, by: 2) { pieces[place] = makePiece() }
      copy.endOperation()
      copy.endCommit()
      let other = KeyedSectionTable(copying: copy, Pace())
      for handle in rows..<(2 * rows) {
        expect(!other.addRow(handle, to: 0))
        expectEqual(other.section(of: handle), 0)
      }
      expect(copy.rowCount(of: 0) == Int(rows) + 1 && other.rowCount(of: 0) == Int(rows) * 2 + 1)
    }
  }

  @Test(
    arguments: [
      (#""ab""#, "feed/ab"), (#""a\u0000b""#, "feed/a\0b"), (#""\u0000""#, "feed/\0"), (#""é😀\n""#, "feed/é😀\n"),
      (#""\ud800x""#, #"feed/"\ud800x""#), ("7.50", "feed/7.5"), ("-0", "feed/0"), ("true", "feed/true"),
      ("false", "feed/false"), ("null", "feed"), (#""""#, "feed"), ("[1]", "feed"), (nil, "feed"),
    ] as [(String?, String)])
  func namesAreReadFromElements(value: String?, name: String) throws {
    for descending in [false, true] {
      let path = try SingularPath(parsing: "$.v")
      let names = SectionNames(feed: "feed", path: path, descending: descending)
      let text = try makeText(value, descending: descending)
      defer { text.release() }
      let (number, surrogates, none) = try (
        makeText("1", descending: descending), makeText(#""\ud800""#, descending: descending),
        makeText(nil, descending: descending)
      )
      defer { for text in [number, surrogates, none] { text.release() } }
      // Each name is independent of the ones before.
      for (text, name) in [
        (text, name), (surrogates, #"feed/"\ud800""#), (text, name), (none, "feed"), (text, name), (number, "feed/1"),
      ] {
        expectEqual(names.name(of: text), name)
        expectEqual(names.withName(of: text) { String(decoding: $0, as: UTF8.self) }, name)
      }
    }
  }

  @Test(arguments: [false, true])
  func namesAreReadInWords(descending: Bool) throws {
    let names = SectionNames(feed: "f", path: try SingularPath(parsing: "$.v"), descending: descending)
    for length in 0...20 {
      for place in 0...length {
        for (escape, character) in [
          ("", ""), (#"\u0000"#, "\0"), (#"\u0000\u0000"#, "\0\0"), ("\u{7F}", "\u{7F}"), ("\u{80}", "\u{80}"),
          ("\u{D7FF}", "\u{D7FF}"), ("\u{E000}", "\u{E000}"), (#"\ud800"#, #"\ud800"#), ("😀", "😀"),
        ] where length > 0 || !character.isEmpty {
          let (head, tail) = ("abcdefghijklmnopqrst".prefix(place), "ABCDEFGHIJKLMNOPQRST".prefix(length - place))
          let text = try makeText("\"\(head)\(escape)\(tail)\"", descending: descending)
          defer { text.release() }
          let name = "\(head)\(character)\(tail)"
          expectEqual(names.name(of: text), (escape == #"\ud800"# ? "f/\"\(name)\"" : "f/\(name)"))
        }
      }
    }
  }
}
