import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

@Suite struct LinePainterTests {
  private func line(_ width: Int, color: Bool = false, _ add: (inout LinePainter) -> Void) -> String {
    var line = LinePainter(width: width, palette: Palette(isOn: color))
    add(&line)
    return line.text
  }

  private func json(_ text: String, width: Int = 80, color: Bool = false) throws -> String {
    try withJSON(text) { view in line(width, color: color) { $0.add(view) } }
  }

  @Test func longLinesAreTruncatedWithAMark() {
    #expect(line(10) { $0.add("123456789") } == "123456789")
    #expect(line(10) { $0.add("1234567890") } == "123456789…")
    #expect(
      line(4) {
        $0.add("12"); $0.add("34"); $0.add("56")
      } == "123…")
    #expect(line(1) { $0.add("12") } == "…")
    // A wide character is never split.
    #expect(line(6) { $0.add("日本語日本") } == "日本…")
    // Combining marks have no width.
    #expect(line(5) { $0.add("e\u{301}e\u{301}e\u{301}e\u{301}") } == "e\u{301}e\u{301}e\u{301}e\u{301}")
  }

  @Test func controlCharactersAreReplaced() {
    #expect(
      line(40) { $0.add("a\u{1B}[31mb\u{7}\u{9B}c\n\u{202E}d\u{7F}") }
        == "a\u{FFFD}[31mb\u{FFFD}\u{FFFD}c\u{FFFD}\u{FFFD}d\u{FFFD}")
  }

  @Test func coloursDependOnTheKindOfValue() throws {
    let shown = try json("{\"a\":[1,\"x\",null]}", color: true)
    #expect(
      shown.replacing("\u{1B}[", with: "^")
        == "{^36m\"a\"^0m^2m: ^0m[^33m1^0m^2m, ^0m^32m\"x\"^0m^2m, ^0m^35mnull^0m]}")
    #expect(try json("{ \"a\" : [ ] }") == "{\"a\": []}")
  }

  @Test func deepAndLongValuesAreTruncatedAtTheWidth() throws {
    let deep = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
    #expect(try json(deep, width: 10) == "[[[[[[[[[…")
    let long = "\"" + String(repeating: "é", count: 10_000) + "\""
    #expect(try json(long, width: 5) == "\"ééé…")
    #expect(try json("[" + String(repeating: "1,", count: 5000) + "1]", width: 8) == "[1, 1, …")
  }

  @Test func padding() {
    #expect(
      line(20) {
        $0.add("日"); $0.pad(to: 4); $0.add("x"); $0.pad(to: 2); $0.add("y")
      } == "日  xy")
  }
}
