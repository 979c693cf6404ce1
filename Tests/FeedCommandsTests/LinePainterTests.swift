import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

struct LinePainterTests {
  private func line(_ width: Int, color: Bool = false, _ add: (inout LinePainter) -> Void) -> String {
    var line = LinePainter(width: width, palette: Palette(isOn: color))
    add(&line)
    return line.text
  }

  private func json(_ text: String, width: Int = 80, color: Bool = false) throws -> String {
    try withJSON(text) { view in line(width, color: color) { $0.add(view) } }
  }

  @Test func longLinesAreTruncatedWithAMark() {
    expectEqual(line(10) { $0.add("123456789") }, "123456789")
    expectEqual(line(10) { $0.add("1234567890") }, "123456789…")
    expectEqual(
      line(4) {
        $0.add("12"); $0.add("34"); $0.add("56")
      }, "123…")
    expectEqual(line(1) { $0.add("12") }, "…")
    // A wide character is never split.
    expectEqual(line(6) { $0.add("日本語日本") }, "日本…")
    // Combining marks have no width.
    expectEqual(line(5) { $0.add("e\u{301}e\u{301}e\u{301}e\u{301}") }, "e\u{301}e\u{301}e\u{301}e\u{301}")
  }

  @Test(
    "widths are those of terminals",
    arguments: [
      ("a", 1), ("é", 1), ("e\u{301}", 1), ("日", 2), ("ｱ", 1), ("Ａ", 2), ("한", 2), ("\u{1112}\u{1161}\u{11AB}", 2),
      ("😀", 2),
      ("👨‍👩‍👧‍👦", 2), ("🇩🇪", 2), ("👍🏽", 2), ("❤", 1), ("❤️", 2), ("❤️‍🔥", 2), ("1️⃣", 2), ("1\u{20E3}", 1), ("©", 1), ("©️", 2),
      ("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", 2), ("\u{200B}", 0), ("\u{AD}", 1), ("क्षि", 2),
      ("कि", 2),
      ("क्", 1), ("น้ำ", 2), ("ｶﾞ", 2), ("ab日本😀e\u{301}", 9), ("⌚", 2), ("☔", 2), ("☀", 1), ("䷀", 2), ("🫨", 2),
      ("a\u{200D}b", 2),
    ])
  func widths(text: String, columns: Int) {
    expectEqual(DisplayWidth.columns(of: text), columns)
    expectEqual(line(columns + 1) { $0.add(text) }, text)
    let twice = text + text
    // Some characters join with the next one.
    guard columns > 0, twice.count == 2 * text.count else { return }
    expectEqual(line(2 * columns + 1) { $0.add(twice + text) }, twice + "…")
  }

  @Test func longScalarsEndAtACharacter() throws {
    let family = "👨‍👩‍👧‍👦"
    let long = String(repeating: family, count: 1000)
    try expectEqual(json("\"\(long)\"", width: 8), "\"\(family)\(family)\(family)…")
    // A character of many bytes: fewer columns than there are, but nothing is cut in two.
    let heavy = "x" + String(repeating: "\u{301}", count: 500)
    let shown = try json("\"\(heavy)\(heavy)\"", width: 8)
    expect(shown == "\"…" || shown == "\"\(heavy)…")
  }

  @Test func controlCharactersAreReplaced() {
    expectEqual(
      line(40) { $0.add("a\u{1B}[31mb\u{7}\u{9B}c\n\u{202E}d\u{7F}") },
      "a\u{FFFD}[31mb\u{FFFD}\u{FFFD}c\u{FFFD}\u{FFFD}d\u{FFFD}")
  }

  @Test func coloursDependOnTheKindOfValue() throws {
    let shown = try json("{\"a\":[1,\"x\",null]}", color: true)
    expectEqual(
      shown.replacing("\u{1B}[", with: "^"), "{^36m\"a\"^0m^2m: ^0m[^33m1^0m^2m, ^0m^32m\"x\"^0m^2m, ^0m^35mnull^0m]}")
    try expectEqual(json("{ \"a\" : [ ] }"), "{\"a\": []}")
  }

  @Test func deepAndLongValuesAreTruncatedAtTheWidth() throws {
    let deep = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
    try expectEqual(json(deep, width: 10), "[[[[[[[[[…")
    let long = "\"" + String(repeating: "é", count: 10_000) + "\""
    try expectEqual(json(long, width: 5), "\"ééé…")
    try expectEqual(json("[" + String(repeating: "1,", count: 5000) + "1]", width: 8), "[1, 1, …")
  }

  @Test func padding() {
    expectEqual(
      line(20) {
        $0.add("日"); $0.pad(to: 4); $0.add("x"); $0.pad(to: 2); $0.add("y")
      }, "日  xy")
  }
}
