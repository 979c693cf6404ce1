import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

@Suite struct TemplatesTests {
  private func shown(_ templates: String..., element: String, type: String? = nil, width: Int = 80) throws -> String {
    var all = Templates()
    for template in templates { try all.add(template) }
    return try withJSON(element) { view in
      var line = LinePainter(width: width, palette: Palette(isOn: false))
      all.add(view, type: type, to: &line)
      return line.text
    }
  }

  private let song =
    "{\"title\":\"So \\\"What\\\"\",\"by\":{\"name\":\"Davis\"},\"year\":1959,\"tags\":[\"cool\",\"modal\"],\"x\":null}"

  @Test func bracesAreReplacedByMembers() throws {
    try expectEqual(shown("Song={title} by {by.name}", element: song, type: "Song"), "So \"What\" by Davis")
    try expectEqual(
      shown("{year}: {tags.1} {tags.-1} {tags}", element: song), "1959: modal modal [\"cool\", \"modal\"]")
    try expectEqual(shown("[{x}{absent}{title.deeper}]", element: song), "[]")
    try expectEqual(shown("nothing", element: song), "nothing")
    // Types are compared by their bytes.
    for (type, text) in [("\u{e9}", "one"), ("e\u{301}", "two")] {
      try expectEqual(shown("\u{e9}=one", "e\u{301}=two", element: song, type: type), text)
    }
  }

  @Test("fields have widths, alignments and defaults, and braces can be escaped") func formats() throws {
    try expectEqual(shown("{year:>6}|{year:<6}|{year:^6}|{year:6}", element: song), "  1959|1959  | 1959 |  1959")
    try expectEqual(shown("{title:4}|{title:20}|", element: song), "So …|So \"What\"           |")
    try expectEqual(shown("{absent|none} {x|null:>5} {by.name|?}", element: song), "none  null Davis")
    try expectEqual(shown("{year:>6|none}|{absent:>6|12:30}", element: song), "  1959| 12:30")
    try expectEqual(shown("{{{year}}} }}{{", element: song), "{1959} }{")
    try expectEqual(shown("{}", element: "[1,2]"), "[1, 2]")
    try expectEqual(shown("{t:4}|", element: "{\"t\":\"日本語\"}"), "日… |")
    try expectEqual(shown("{t:6}|", element: "{\"t\":\"日本語\"}"), "日本語|")
  }

  @Test(
    "filters yield JSON and markup for any text",
    arguments: [
      (#""plain""#, "plain"),
      (#""say \"hi\" \\ & <b>'x'</b>""#, "say &quot;hi&quot; \\ &amp; &lt;b&gt;&#39;x&#39;&lt;/b&gt;"),
      (#""a\nb\tc\r\nd""#, "a\nb\tc\r\nd"), (#""👨‍👩‍👧‍👦 🇩🇪 é שלום""#, "👨‍👩‍👧‍👦 🇩🇪 é שלום"),
      (#""\u0000\u0001\u001b[2J\u007f""#, "\u{FFFD}\u{FFFD}\u{FFFD}[2J\u{7F}"),
      ("\"\u{202E}\u{85}\u{2028}\"", "\u{202E}\u{85}\u{2028}"),
      (#""\ud83d\ude00 \ud800 \udc00""#, "😀 \u{FFFD} \u{FFFD}"),
      ("\"\u{FFFE}\u{FFFF}\"", "\u{FFFD}\u{FFFD}"), (#"""# + #"""#, ""),
    ])
  func filters(json: String, markup: String) throws {
    let element = "{\"t\":\(json)}"
    // JSON keeps every character, also lone surrogates.
    let same = try shown("{t!json}", element: element, width: LinePainter.unlimited)
    try expectEqual(JSONValue(same), JSONValue(json))
    let both = try shown("{t!markup!json}", element: element, width: LinePainter.unlimited)
    try expectEqual(JSONValue(both).string, markup)
    for text in [
      same, both, try shown("{t!markup}", element: element, width: LinePainter.unlimited),
      try shown("{!json}", element: element, width: LinePainter.unlimited),
    ] {
      expect(text.unicodeScalars.filter(\.controlsTerminal).isEmpty, "\(text.debugDescription)")
    }
    try expectEqual(JSONValue(try shown("{!json}", element: element, width: LinePainter.unlimited)), JSONValue(element))
    let line = try shown(
      "{{\"text\":{t!markup!json},\"class\":{level!json|low},\"row\":{!json}}}", element: element,
      width: LinePainter.unlimited)
    try expectEqual(JSONValue(line)["text"].string, markup)
    try expectEqual(JSONValue(line)["class"].string, "low")
    try expectEqual(JSONValue(line)["row"]["t"], JSONValue(json))
  }

  @Test("filters of other values, of missing ones and with widths") func filteredValues() throws {
    try expectEqual(
      shown("{year!json} {x!json} {absent!json} {absent!json|none}", element: song), "1959 null null \"none\"")
    try expectEqual(shown("{tags!json}{by!json}", element: song), "[\"cool\",\"modal\"]{\"name\":\"Davis\"}")
    try expectEqual(
      shown("{tags!markup} {absent!markup|<>}", element: song), "[&quot;cool&quot;,&quot;modal&quot;] &lt;&gt;")
    try expectEqual(shown("{year!json:6} {t!json:4} {absent!json:>3|-}", element: song), "\"  1959\" \"    \" \"  -\"")
    try expectEqual(shown("{t!markup:4}|", element: "{\"t\":\"a<b<c<d\"}"), "a&lt;b…|")
    try expectEqual(shown("{t!markup!json:4}", element: "{\"t\":\"\\\"\\\"\\\"\\\"\\\"\"}"), "\"&quot;&quot;&quot;…\"")
    try expectEqual(shown("{title!json!json}", element: song), "\"\\\"So \\\\\\\"What\\\\\\\"\\\"\"")
  }

  @Test("white space is a space, and a width never cuts a character") func charactersAndWidths() throws {
    try expectEqual(shown("{t}|", element: "{\"t\":\"a\\tb\\r\\nc\\u2028d\\u000be\"}"), "a b c d e|")
    try expectEqual(shown("{t:3}|", element: "{\"t\":\"a\\tbc\"}"), "a …|")
    let family = "👨‍👩‍👧‍👦"
    for (text, shown) in [
      ("\(family)\(family)\(family)", "\(family)… "), ("\(family)\(family)", "\(family)\(family)"), ("🇩🇪🇫🇷🇮🇹", "🇩🇪… "),
      ("e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", "e\u{301}e\u{301}e\u{301}…"), ("❤️❤️❤️", "❤️… "), ("👍🏽👍🏽👍🏽", "👍🏽… "),
      ("a\(String(repeating: "\u{301}", count: 500))bcde", "a\(String(repeating: "\u{301}", count: 500))bc…"),
      ("日本", "日本"),
    ] {
      let line = try self.shown("{t:4}", element: "{\"t\":\"\(text)\"}")
      expectEqual(line, shown)
      expect(line.unicodeScalars.elementsEqual(shown.unicodeScalars))
    }
    try expectEqual(shown("\t{year}\t|", element: song, width: LinePainter.unlimited), "\t1959\t|")
    try expectEqual(shown("{year}\t|", element: song), "1959    |")
  }

  @Test func templateIsChosenByType() throws {
    try expectEqual(shown("A=a", "B=b", "other", element: "1", type: "B"), "b")
    try expectEqual(shown("A=a", "B=b", "other", element: "1", type: "C"), "other")
    try expectEqual(shown("A=a", element: "[1,2]", type: "C"), "[1, 2]")
    try expectEqual(shown("A=a", element: "1", type: nil), "1")
    // An equals sign after the first brace is text.
    try expectEqual(shown("{year}=x", element: song), "1959=x")
  }

  @Test func lineBreaksAreReplacedAndLinesTruncated() throws {
    try expectEqual(shown("{t}!", element: "{\"t\":\"a\\nb\\u001b[2J\"}"), "a b\u{FFFD}[2J!")
    try expectEqual(shown("{t}!", element: "{\"t\":\"abcdefgh\"}", width: 5), "abcd…")
  }

  @Test(arguments: [
    "A={", "A={a..b}", "{a!}", "{a!xml}", "{!json!}", "{a!json!JSON}", "{a", "}", "a}b", "{a:}", "{a:>}", "{a:x}",
    "{a:0}", "{a:>-3}", "{a:9999}", "{a:|x}", "{a:x|y}",
  ])
  func malformedTemplatesAreRefused(template: String) {
    var templates = Templates()
    #expect(throws: Failure.self) { try templates.add(template) }
  }

  @Test(arguments: [
    ("$", ""), ("$.id", "id"), ("$.user.name", "user.name"), ("$['a b']", "a b"), ("$[\"x\"][2].y", "x.2.y"),
    ("$[-1]", "-1"), ("$._é", "_é"),
  ])
  func plainPathsAreParsed(path: String, steps: String) {
    let expected =
      steps.isEmpty
      ? [] : steps.split(separator: ".").map { Int($0).map { .index($0) } ?? MemberPath.Step.name(String($0)) }
    expectEqual(MemberPath(jsonPath: path)?.steps, expected)
  }

  @Test(arguments: [
    "", "id", "@.id", "$.", "$.1a", "$..id", "$.*", "$[*]", "$['a\\'b']", "$[", "$['a'", "$[?@.a]", "$[0:1]", "$ .a",
  ])
  func otherPathsAreLeftToTheDaemon(path: String) { expectEqual(MemberPath(jsonPath: path), nil) }

  @Test func pushTargets() throws {
    func target(_ description: String) throws -> PushTarget { try withJSON(description) { PushTarget($0) } }
    func alone(_ target: PushTarget, _ element: String) throws -> Bool {
      try withJSON(element) { target.mustTravelAlone($0) }
    }
    let plain = try target("{\"feed\":\"f\",\"kind\":\"collection\",\"id\":\"$.a.b\"}")
    expectEqual(plain.method, "update")
    try expect(!alone(plain, "{\"a\":{\"b\":1}}"))
    try expect(!alone(plain, "{\"a\":{\"b\":\"x\"}}"))
    for element in ["{\"a\":1}", "{\"a\":{\"b\":null}}", "{\"a\":{\"b\":[]}}", "7"] {
      try expect(alone(plain, element))
    }
    let obscure = try target("{\"feed\":\"f\",\"kind\":\"collection\",\"id\":\"$['\\\\u0061']\"}")
    try expect(alone(obscure, "{\"a\":1}"))
    let array = try target("{\"feed\":\"f\",\"kind\":\"array\"}")
    expectEqual(array.method, "insert")
    try expect(!alone(array, "7"))
    let single = try target("{\"feed\":\"f\",\"kind\":\"single\"}")
    expectEqual(single.method, "put")
    try expect(alone(single, "7"))
  }
}
