import FeedChange
import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

struct LiveListTests {
  private let plain = Palette(isOn: false)
  private let second: UInt64 = 1_000_000_000

  /// A mirror whose sections have rows 0..<count.
  private func mirror(_ counts: [Int]) throws -> Mirror {
    let summaries = counts.enumerated().map { SectionSummary(name: "s\($0.offset)", count: $0.element) }
    var mirror = Mirror(WatchStart(feed: "f", epoch: "e", revision: 1, resumed: false, sections: summaries))
    let elements = counts.flatMap { (0..<$0).map { utf8("\($0)") } }
    try mirror.apply(
      SnapshotPart(feed: "f", revision: 1, at: IndexPath(section: 0, row: 0), elements: elements, isLast: true))
    return mirror
  }

  private func path(_ section: UInt32, _ row: UInt32) -> IndexPath { IndexPath(section: section, row: row) }

  @Test func shortFeedsAreShownCompletely() throws {
    var list = LiveList(templates: Templates())
    expectEqual(
      list.lines(try mirror([2, 0, 1]), width: 20, height: 10, palette: plain),
      [
        "s0  2", "  0", "  1", "s1  0", "s2  1", "  0",
      ])
  }

  @Test func changesAreMarkedTemporarily() throws {
    var mirror = try mirror([3, 1])
    var list = LiveList(templates: Templates())
    let change = Change(
      deleted: [path(0, 0), path(1, 0)], added: [path(0, 0), path(0, 3)], updated: [path(0, 1)],
      moves: [Move(deleted: 1, added: 1)])
    let elements = ["7", "8", "9"].map(utf8)
    try mirror.apply(Delta(feed: "f", from: 1, revision: 2, change: change, elements: elements))
    list.note(change, revision: 2, sections: 2, now: 5 * second)
    let marked = ["s0  4 +1 ~1 >1 -1", "+ 7", "~ 9", "  2", "> 8", "s1  0"]
    expectEqual(list.lines(mirror, width: 40, height: 10, palette: plain), marked)
    expectEqual(list.deadline, 7 * second)
    list.expire(now: 6 * second)
    expectEqual(list.lines(mirror, width: 40, height: 10, palette: plain), marked)
    list.expire(now: 7 * second)
    expectEqual(list.deadline, nil)
    expectEqual(
      list.lines(mirror, width: 40, height: 10, palette: plain), ["s0  4", "  7", "  9", "  2", "  8", "s1  0"])
  }

  @Test func longSectionsScrollToChanges() throws {
    var mirror = try mirror([100])
    var list = LiveList(templates: Templates())
    expectEqual(list.lines(mirror, width: 40, height: 4, palette: plain), ["s0  100  rows 0…2", "  0", "  1", "  2"])
    func update(_ row: UInt32, _ revision: UInt64) throws -> [String] {
      let change = Change(updated: [path(0, row)])
      try mirror.apply(
        Delta(feed: "f", from: revision - 1, revision: revision, change: change, elements: [utf8("\"new\"")]))
      list.note(change, revision: revision, sections: 1, now: 0)
      list.expire(now: .max)
      return list.lines(mirror, width: 40, height: 4, palette: plain)
    }
    try expectEqual(update(50, 2)[0], "s0  100  rows 48…50")
    // A change of a visible row does not scroll the list.
    try expectEqual(update(49, 3)[0], "s0  100  rows 48…50")
    try expectEqual(update(10, 4)[0], "s0  100  rows 10…12")
    try expectEqual(update(99, 5)[0], "s0  100  rows 97…99")
    let gone = Change(deleted: (0..<95).map { path(0, $0) })
    try mirror.apply(Delta(feed: "f", from: 5, revision: 6, change: gone, elements: []))
    expectEqual(list.lines(mirror, width: 40, height: 4, palette: plain)[0], "s0  5  rows 2…4")
  }

  @Test func sectionsAreAddedAndDeleted() throws {
    var mirror = try mirror([1, 1])
    var list = LiveList(templates: Templates())
    let change = Change(added: [path(0, 0)], sectionsDeleted: [0], sectionsAdded: [SectionAddition(at: 0, name: "new")])
    try mirror.apply(Delta(feed: "f", from: 1, revision: 2, change: change, elements: [utf8("5")]))
    list.note(change, revision: 2, sections: 2, now: 0)
    expectEqual(list.lines(mirror, width: 40, height: 10, palette: plain), ["new  1 +1", "+ 5", "s1  1", "  0"])
  }

  @Test func selectedRowsAndTypesAreShown() throws {
    var mirror = try mirror([2])
    try mirror.apply(Selection(feed: "f", revision: 1, selected: [path(0, 1)]))
    let change = Change(updated: [path(0, 0)])
    try mirror.apply(
      Delta(feed: "f", from: 1, revision: 2, change: change, elements: [utf8("{\"t\":1}")], types: ["Style"]))
    var templates = Templates()
    try templates.add("Style=<{t}>")
    var list = LiveList(templates: templates)
    list.note(change, revision: 2, sections: 1, now: 0)
    expectEqual(list.lines(mirror, width: 40, height: 5, palette: plain), ["s0  2 ~1", "~  Style <1>", " ● 1"])
  }

  @Test func sectionsBeyondTheScreenAreOmitted() throws {
    var list = LiveList(templates: Templates())
    let mirror = try mirror([5, 5, 0, 5])
    expectEqual(
      list.lines(mirror, width: 40, height: 3, palette: plain), ["s0  5  rows 0…0", "  0", "… 3 more sections"])
    // Those around the cursor are shown.
    list.move(by: 100, in: mirror)
    expectEqual(
      list.lines(mirror, width: 40, height: 4, palette: plain),
      [
        "s3  5  rows 3…4", "  3", " ▸4", "… 3 sections above, 0 below",
      ])
    list.move(by: -100, in: mirror)
    expectEqual(list.lines(mirror, width: 40, height: 3, palette: plain).last, "… 3 more sections")
  }

  @Test("with a cursor the rows shown stay in their lines when rows above them come and go") func steadiness() throws {
    var mirror = try mirror([50])
    var list = LiveList(templates: Templates())
    func draw() -> [String] { list.lines(mirror, width: 60, height: 5, palette: plain) }
    _ = draw()
    list.move(by: 1, in: mirror)
    list.move(by: 20, in: mirror)
    let rows = draw()[1...]
    expectEqual(rows, ["  17", "  18", "  19", " ▸20"])
    let change = Change(
      deleted: [path(0, 1), path(0, 30)], added: [path(0, 0), path(0, 3), path(0, 40)], updated: [path(0, 45)])
    try mirror.apply(
      Delta(
        feed: "f", from: 1, revision: 2, change: change, elements: ["\"a\"", "\"b\"", "\"c\"", "\"d\""].map(utf8)))
    list.note(change, revision: 2, sections: 1, now: 0)
    expectEqual(draw()[1...], rows)
    expect(draw()[0].contains("  changes ↑3 ↓3  "))
    // The row of the cursor goes out of view: the next one is in its place.
    let move = Change(deleted: [path(0, 21)], added: [path(0, 0)], moves: [Move(deleted: 0, added: 0)])
    try mirror.apply(Delta(feed: "f", from: 2, revision: 3, change: move, elements: [utf8("20")]))
    list.note(move, revision: 3, sections: 1, now: 0)
    expectEqual(draw()[1...], ["  17", "  18", "  19", " ▸21"])
  }

  @Test("long lines of a page are wrapped between words") func pages() {
    expectEqual(
      TextPage.wrap("  \"text\": \"one two three four\"", 16), ["  \"text\": \"one", "    two three", "    four\""])
    expectEqual(TextPage.wrap("abcdefghij", 4), ["abcd", "  ef", "  gh", "  ij"])
    expectEqual(TextPage.wrap("日本語テキスト", 6), ["日本語", "  テキ", "  スト"])
    expectEqual(
      TextPage.wrap("  Tab    next, previous section", 20, 9),
      [
        "  Tab    next,", "         previous", "         section",
      ])
    var page = TextPage((0..<20).map { "line \($0)" })
    let stays = page.take(.character("G"), width: 40, height: 5)
    expectEqual(page.lines(width: 40, height: 5), (15..<20).map { "line \($0)" })
    let ends = !page.take(.character("x"), width: 40, height: 5)
    expect(stays && ends)
  }

  @Test("words that do not fit are left out whole") func words() {
    func line(_ width: Int) -> String {
      var line = LinePainter(width: width, palette: plain)
      line.add("inbox")
      line.addWords("  waiting for a daemon")
      return line.text
    }
    expectEqual(line(40), "inbox  waiting for a daemon")
    expectEqual(line(27), "inbox  waiting for a …")
    expectEqual(line(24), "inbox  waiting for a …")
    expectEqual(line(20), "inbox  waiting …")
    expectEqual(line(12), "inbox …")
    expectEqual(line(7), "inbox…")
  }

  @Test func layoutsFillTheScreenExactly() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<2000 {
      let counts = (0..<Int.random(in: 0...8, using: &random)).map { _ in Int.random(in: 0...20, using: &random) }
      let height = Int.random(in: 0...30, using: &random)
      let layout = LiveLayout(counts: counts, height: height)
      let lines = layout.rooms.reduce(layout.rooms.count, +) + (layout.hiddenSections > 0 ? 1 : 0)
      let all = counts.reduce(counts.count, +)
      expect(lines <= max(height, layout.hiddenSections > 0 ? 1 : 0), "seed \(random.seed)")
      expect(layout.hiddenSections > 0 || lines == min(all, height), "seed \(random.seed), \(counts), \(height)")
      expectEqual(layout.rooms.count + layout.hiddenSections, counts.count)
      expect(zip(layout.rooms, counts).allSatisfy { $0 <= $1 })
      // Every section has at most one row more than a truncated one.
      let cut = zip(layout.rooms, counts).filter { $0 < $1 }.map(\.0)
      expect((layout.rooms.max() ?? 0) <= (cut.min() ?? .max - 1) + 1, "seed \(random.seed), \(counts), \(height)")
    }
  }

  @Test("the cursor stays on its row, and changes elsewhere are counted") func cursor() throws {
    var mirror = try mirror([10, 10])
    var list = LiveList(templates: Templates())
    func draw() -> [String] { list.lines(mirror, width: 60, height: 10, palette: plain) }
    _ = draw()
    list.move(by: 1, in: mirror)
    expectEqual(list.cursor, path(0, 0))
    list.move(by: 12, in: mirror)
    expectEqual(list.cursor, path(1, 2))
    _ = draw()
    // Two rows are added before it and one is deleted.
    let change = Change(deleted: [path(1, 0)], added: [path(1, 0), path(1, 1)], updated: [path(0, 9)])
    try mirror.apply(
      Delta(feed: "f", from: 1, revision: 2, change: change, elements: ["\"a\"", "\"b\"", "\"c\""].map(utf8)))
    list.note(change, revision: 2, sections: 2, now: 0)
    expectEqual(list.cursor, path(1, 3))
    let lines = draw()
    expect(lines[0].contains("changes ↑0 ↓1"), "\(lines)")
    expect(lines.contains { $0.hasPrefix(" ▸") && $0.hasSuffix("2") }, "\(lines)")
    list.moveSection(by: -1, in: mirror)
    expectEqual(list.cursor, path(0, 0))
    let findsText = list.search("c", in: mirror, forward: true)
    expect(findsText)
    expectEqual(list.cursor, path(0, 9))
    let findsNumber = list.search("7", in: mirror, forward: true)
    expect(findsNumber)
    expectEqual(list.cursor, path(1, 8))
    list.move(by: 1000, in: mirror)
    expectEqual(list.cursor, path(1, 10))
    let gone = Change(deleted: (0..<11).map { path(1, $0) })
    try mirror.apply(Delta(feed: "f", from: 2, revision: 3, change: gone, elements: []))
    list.note(gone, revision: 3, sections: 2, now: 0)
    _ = draw()
    expectEqual(list.cursor, path(0, 9))
    list.follow()
    expectEqual(list.cursor, nil)
  }

  @Test("escape sequences of terminals are keys") func keys() {
    func keys(_ text: String) -> [Key] { Key.parse(Array(text.utf8)) }
    expectEqual(keys("j\u{1B}[A\u{1B}[6~\u{1B}OH\r"), [.character("j"), .up, .pageDown, .home, .enter])
    expectEqual(keys("\u{1B}"), [.escape])
    expectEqual(keys("\u{1B}[1;5Cx"), [.character("x")])
    expectEqual(keys("é\t\u{7F}"), [.character("é"), .tab, .backspace])
  }
}
