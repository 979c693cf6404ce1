import FeedJSON
import FeedQuery
import TestSupport
import Testing

@testable import FeedModel

/// The table of the sections by value, and the names that are read from their elements.
@Suite struct KeyedSectionTableTests {
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
      return try #require(ElementText(identity: none, keys: keys.bytes, text: bytes, type: 0..<0))
    }
  }

  /// What the table should know of a section.
  private struct Expected {
    var id: UInt32
    var count = 0
    /// The counts before the operation and the commit; nil if the scope did not touch the section.
    var before: (operation: Int?, commit: Int?) = (nil, nil)
    /// Whether the section lost its last row in this commit, with a known key.
    var isGone = false
  }

  @Test(arguments: 1...6) func randomChangesOfSections(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let texts = try (10..<30).map { try makeText("\($0)") }
    defer { for text in texts { text.release() } }
    let table = KeyedSectionTable()
    var sections: [Int: Expected] = [:]
    for step in 0..<2000 {
      let value = Int.random(in: 0..<texts.count, using: &random)
      let key = SortOrder.key(0, in: texts[value].keys)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        if sections[value] == nil {
          let gone = table.findGone(key)
          #expect(gone == KeyedSectionTable.none)
          sections[value] = Expected(id: table.make())
        } else if sections[value]?.isGone == true {
          #expect(table.findGone(key) == sections[value]?.id)
        }
        guard var section = sections[value] else { continue }
        section.before = (section.before.operation ?? section.count, section.before.commit ?? section.count)
        section.count += 1
        #expect(table.addRow(to: section.id) == (section.count == 1))
        if section.count == 1 {
          let index = sections.count { $0.key < value && $0.value.count > 0 }
          table.didFill(section.id, at: index, first: UInt32(value))
        }
        section.isGone = false
        sections[value] = section
      case 4..<8:
        guard var section = sections[value], section.count > 0 else { continue }
        section.before = (section.before.operation ?? section.count, section.before.commit ?? section.count)
        section.count -= 1
        #expect(table.removeRow(from: section.id) == (section.count == 0))
        if section.count == 0 { table.didEmpty(section.id, version: texts[value]) }
        section.isGone = section.count == 0
        sections[value] = section
      case 8:
        table.endOperation()
        for value in sections.keys { sections[value]?.before.operation = nil }
      default:
        table.endOperation()
        table.endCommit()
        sections = sections.filter { $0.value.count > 0 }
        for value in sections.keys { sections[value]?.before = (nil, nil) }
      }
      table.checkInvariants()
      try check(table, sections, "seed \(seed), step \(step)")
    }
    table.endOperation()
    table.endCommit()
    for text in texts { #expect(text.header.pointee.references == 1) }
  }

  private func check(_ table: KeyedSectionTable, _ sections: [Int: Expected], _ note: Comment) throws {
    let present = sections.filter { $0.value.count > 0 }.sorted { $0.key < $1.key }
    #expect((0..<table.count).map { table[$0] } == present.map(\.value.id), note)
    for (index, section) in present.enumerated() {
      #expect(table.index(of: section.value.id) == index && table.first(of: section.value.id) == section.key, note)
      #expect(table.rowCount(of: section.value.id) == section.value.count, note)
    }
    let operation = Dictionary(uniqueKeysWithValues: table.touched.operation.map { ($0.id, $0.before) })
    let commit = Dictionary(uniqueKeysWithValues: table.touched.commit.map { ($0.id, $0.before) })
    for section in sections.values {
      #expect(operation[section.id] == section.before.operation && commit[section.id] == section.before.commit, note)
    }
    let gone = sections.filter(\.value.isGone).sorted { $0.key < $1.key }
    #expect(gone.enumerated().allSatisfy { table.goneIndex(of: $1.value.id) == $0 }, note)
  }

  /// A section whose creation is undone is not found by its key, and its identifier is free after the commit.
  @Test func undoneSectionIsForgotten() throws {
    let text = try makeText("1")
    defer { text.release() }
    let table = KeyedSectionTable()
    let id = table.make()
    #expect(table.addRow(to: id))
    table.didFill(id, at: 0, first: 5)
    #expect(table.removeRow(from: id))
    table.didEmpty(id, version: nil)
    #expect(table.findGone(SortOrder.key(0, in: text.keys)) == KeyedSectionTable.none)
    table.endOperation()
    table.endCommit()
    #expect(table.make() == id)
  }

  @Test(
    arguments: [
      (#""ab""#, "feed/ab"), (#""a\u0000b""#, "feed/a\0b"), (#""\u0000""#, "feed/\0"), (#""é😀\n""#, "feed/é😀\n"),
      (#""\ud800x""#, "feed/\u{FFFD}x"), ("7.50", "feed/7.5"), ("-0", "feed/0"), ("true", "feed/true"),
      ("false", "feed/false"), ("null", "feed"), (#""""#, "feed"), ("[1]", "feed"), (nil, "feed"),
    ] as [(String?, String)])
  func namesAreReadFromElements(value: String?, name: String) throws {
    for descending in [false, true] {
      let path = try SingularPath(parsing: "$.v")
      let names = SectionNames(feed: "feed", path: path, descending: descending, maxDepth: 8)
      let text = try makeText(value, descending: descending)
      defer { text.release() }
      #expect(names.name(of: text) == name)
    }
  }
}
