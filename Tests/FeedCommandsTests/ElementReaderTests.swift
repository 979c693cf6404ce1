import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

@Suite("reading elements from a stream") struct ElementReaderTests {
  enum Piece: Equatable {
    case element(String, Int)
    case malformed(Int, Int)
    /// A flaw that is not one of syntax.
    case refused(Int, Int)
  }

  /// Reads `input` in pieces of these sizes, cyclically.
  private func read(
    _ input: String, sizes: [Int] = [1000], limit: Int = 1000, capacity: Int = 16, maxDepth: Int = 10_000
  ) -> [Piece] {
    read(Array(input.utf8), sizes: sizes, limit: limit, capacity: capacity, maxDepth: maxDepth)
  }

  private func read(
    _ input: [UInt8], sizes: [Int] = [1000], limit: Int = 1000, capacity: Int = 16, maxDepth: Int = 10_000
  ) -> [Piece] {
    var reader = ElementReader(limit: limit, maxDepth: maxDepth, capacity: capacity)
    var pieces: [Piece] = []
    func drain(_ reader: inout ElementReader) {
      while let item = reader.next() {
        switch item {
        case .element(let view, let line, _): pieces.append(.element(String(decoding: view.text, as: UTF8.self), line))
        case .flaw(let flaw):
          pieces.append(flaw.isSyntax ? .malformed(flaw.line, flaw.column) : .refused(flaw.line, flaw.column))
        }
      }
    }
    var rest = input[...]
    var turn = 0
    while !rest.isEmpty {
      let room = reader.room()
      let count = min(room.count, rest.count, sizes[turn % sizes.count])
      room.copyBytes(from: rest.prefix(count))
      reader.didFill(count)
      rest = rest.dropFirst(count)
      turn += 1
      drain(&reader)
    }
    reader.finish()
    drain(&reader)
    return pieces
  }

  @Test("elements are lines, concatenated, pretty-printed or in arrays", arguments: [1, 3, 1000]) func mixtures(
    size: Int
  ) {
    expectEqual(
      read("{}\n\n  {\"a\": [1, 2]} \r\n \t \n7", sizes: [size]),
      [
        .element("{}", 1), .element("{\"a\": [1, 2]}", 3), .element("7", 5),
      ])
    expectEqual(
      read("{}{\"id\":1}\"x\" 5 true\n", sizes: [size]),
      [
        .element("{}", 1), .element("{\"id\":1}", 1), .element("\"x\"", 1), .element("5", 1), .element("true", 1),
      ])
    expectEqual(
      read("{\n  \"id\": 1\n}\n{\n  \"id\": 2\n}\n", sizes: [size]),
      [
        .element("{\n  \"id\": 1\n}", 1), .element("{\n  \"id\": 2\n}", 4),
      ])
    expectEqual(
      read("[1, [2], {\"a\":\"]\"}]\n[]\n9", sizes: [size]),
      [
        .element("1", 1), .element("[2]", 1), .element("{\"a\":\"]\"}", 1), .element("9", 3),
      ])
    expectEqual(read("", sizes: [size]), [])
    expectEqual(read("\n", sizes: [size]), [])
  }

  @Test("line numbers do not depend on how the input is split", arguments: [1, 2, 5, 17, 1000])
  func lines(size: Int) {
    let input = """
      {"id":1}
      [{"id":2},
       {"id":3}]
      {
        "id": 4
      }{"id":5}
      {"id":6,}
      {"id":7}

      {"id": 8
        "x": 9}
      {"id":10}
      """
    expectEqual(
      read(input, sizes: [size]),
      [
        .element("{\"id\":1}", 1), .element("{\"id\":2}", 2), .element("{\"id\":3}", 3),
        .element("{\n  \"id\": 4\n}", 4), .element("{\"id\":5}", 6), .malformed(7, 9), .element("{\"id\":7}", 8),
        .malformed(11, 3), .element("{\"id\":10}", 12),
      ])
  }

  @Test("an error is reported with line and column, and reading continues with the next line", arguments: [1, 4, 1000])
  func mistakes(size: Int) {
    expectEqual(read("{bad\n{\"id\":1}\n", sizes: [size]), [.malformed(1, 2), .element("{\"id\":1}", 2)])
    expectEqual(read("{\"id\":}\n2\n", sizes: [size]), [.malformed(1, 7), .element("2", 2)])
    // An incomplete line does not affect the next one.
    expectEqual(read("{\"id\":1\n{\"id\":2}\n", sizes: [size]), [.malformed(2, 1), .element("{\"id\":2}", 2)])
    expectEqual(read("{\n  \"id\": nul\n}\n{\"id\":2}", sizes: [size]).last, .element("{\"id\":2}", 4))
    expectEqual(read("1,2\n3", sizes: [size]), [.element("1", 1), .malformed(1, 2), .element("3", 2)])
    expectEqual(read("{\"id\":", sizes: [size]), [.malformed(1, 7)])
    expectEqual(read("[1,\n2", sizes: [size]), [.element("1", 1), .element("2", 2), .malformed(2, 2)])
  }

  @Test("an element that is too long is discarded and the others are read", arguments: [1, 7, 1000]) func longElements(
    size: Int
  ) {
    let long = "\"" + String(repeating: "x", count: 50) + "\""
    expectEqual(
      read("1\n\(long)\n2\n\(long)", sizes: [size], limit: 20),
      [
        .element("1", 1), .refused(2, 1), .element("2", 3), .refused(4, 1),
      ])
    expectEqual(
      read("[\(long), 2, [\(long),\n\(long)], 3] 4", sizes: [size], limit: 20),
      [
        .refused(1, 2), .element("2", 1), .refused(1, 59), .element("3", 2), .element("4", 2),
      ])
    // Broken after the limit: the rest of its line is lost.
    expectEqual(
      read("{\"a\":\(long)} } 5\n6", sizes: [size], limit: 20), [.refused(1, 1), .malformed(1, 60), .element("6", 2)])
    let fitting = "\"" + String(repeating: "x", count: 18) + "\""
    expectEqual(read("   \(fitting)\n", sizes: [size], limit: 20), [.element(fitting, 1)])
    expectEqual(read(fitting, sizes: [size], limit: 19), [.refused(1, 1)])
  }

  @Test(
    "commas of arrays are strict, and every item arrives", arguments: [1, 2, 1000],
    [
      ("[1,,2]", [.element("1", 1), .malformed(1, 4), .element("2", 1)]),
      ("[1,2,]", [.element("1", 1), .element("2", 1), .malformed(1, 6)]),
      ("[,1]", [.malformed(1, 2), .element("1", 1)]),
      ("[,]\n3", [.malformed(1, 2), .element("3", 2)]),
      ("[,,,,]\n3", [.malformed(1, 2), .element("3", 2)]),
      ("[1 2]\n3", [.element("1", 1), .malformed(1, 4), .element("2", 1), .element("3", 2)]),
      ("[1\n2\n3]", [.element("1", 1), .malformed(2, 1), .element("2", 2), .malformed(3, 1), .element("3", 3)]),
      ("[\"a\"\"b\"]", [.element("\"a\"", 1), .malformed(1, 5), .element("\"b\"", 1)]),
      ("[[1,],2]\n3", [.malformed(1, 5), .element("3", 2)]),
      ("[]\n[ ]\r\n[\n]4", [.element("4", 4)]),
      ("[1]]\n2", [.element("1", 1), .malformed(1, 4), .element("2", 2)]),
      ("[1},\n2]\n3", [.element("1", 1), .malformed(1, 3), .element("2", 2), .element("3", 3)]),
      ("[{\"a\":1,},{\"b\":2}]\n[3]", [.malformed(1, 9), .element("3", 2)]),
      ("[\n1,\n{\"a\":,},\n2\n]\n[3]", [.element("1", 2), .malformed(3, 6), .element("2", 4), .element("3", 6)]),
      ("[1,\n2", [.element("1", 1), .element("2", 2), .malformed(2, 2)]),
      ("[1,", [.element("1", 1), .malformed(1, 4)]),
      ("[[1,2],[3]]\n{\"a\":[4,5]}", [.element("[1,2]", 1), .element("[3]", 1), .element("{\"a\":[4,5]}", 2)]),
      ("{\"id\":1},\n{\"id\":2}", [.element("{\"id\":1}", 1), .malformed(1, 9), .element("{\"id\":2}", 2)]),
    ] as [(String, [Piece])])
  func arrays(size: Int, input: (text: String, pieces: [Piece])) {
    expectEqual(read(input.text, sizes: [size]), input.pieces)
  }

  @Test("a pretty-printed array goes on after a broken item", arguments: [1, 5, 1000]) func prettyArrays(size: Int) {
    let input = """
      [
        {
          "id": 1
        },
        {
          "id": 2
          "a": {
          }
        },
        {
          "id": 3,
          "b": nul
        },
        {
          "id": 4
        }
      ]
      5
      """
    expectEqual(
      read(input, sizes: [size]),
      [
        .element("{\n    \"id\": 1\n  }", 2), .malformed(7, 5), .malformed(12, 13),
        .element("{\n    \"id\": 4\n  }", 14), .element("5", 18),
      ])
  }

  @Test(
    "a byte order mark is skipped at the very beginning and named elsewhere", arguments: [1, 2, 3, 1000])
  func byteOrderMarks(size: Int) {
    expectEqual(read("\u{FEFF}{\"id\":1}\n2x", sizes: [size]), [.element("{\"id\":1}", 1), .malformed(2, 2)])
    expectEqual(read("\u{FEFF}[1,\n2]", sizes: [size]), [.element("1", 1), .element("2", 2)])
    expectEqual(read("\u{FEFF}", sizes: [size]), [])
    expectEqual(read("\u{FEFF}\u{FEFF}1", sizes: [size]), [.malformed(1, 1), .element("1", 1)])
    expectEqual(read(" \u{FEFF}1", sizes: [size]), [.malformed(1, 2), .element("1", 1)])
    expectEqual(read("1\n\u{FEFF}2", sizes: [size]), [.element("1", 1), .malformed(2, 1), .element("2", 2)])
    expectEqual(read("[1,\u{FEFF}2]", sizes: [size]), [.element("1", 1), .malformed(1, 4), .element("2", 1)])
    expectEqual(read("\"\u{FEFF}\"", sizes: [size]), [.element("\"\u{FEFF}\"", 1)])
    expectEqual(read("{\"a\":\u{FEFF}1}\n2", sizes: [size]), [.malformed(1, 6), .element("2", 2)])
    expectEqual(read([0xEF, 0xBB], sizes: [size]), [.malformed(1, 1)])
  }

  @Test("what is not acceptable is refused, and its neighbours arrive", arguments: [1, 4, 1000]) func refusals(
    size: Int
  ) {
    expectEqual(
      read("[[[1]]] 2\n[[1], [[[2]]], 3]", sizes: [size], maxDepth: 2),
      [
        .element("[[1]]", 1), .element("2", 1), .element("[1]", 2), .refused(2, 7), .element("3", 2),
      ])
    let invalid = Array("1 \"a".utf8) + [0xFF] + Array("b\" 2\n[3,\"".utf8) + [0xC0, 0x80] + Array("\"]".utf8)
    expectEqual(
      read(invalid, sizes: [size]),
      [
        .element("1", 1), .refused(1, 5), .element("2", 1), .element("3", 2), .refused(2, 5),
      ])
    // Escapes of lone surrogates are JSON.
    expectEqual(read("\"\\ud800\" 2", sizes: [size]), [.element("\"\\ud800\"", 1), .element("2", 1)])
    expectEqual(
      read("\"a\u{0}b\"\n2\u{0}\n3", sizes: [size]),
      [
        .malformed(1, 3), .element("2", 2), .malformed(2, 2), .element("3", 3),
      ])
    expectEqual(
      read("01 2 1. 3 \"\\x\" 4 NaN 5", sizes: [size]).filter { if case .element = $0 { true } else { false } },
      ["2", "3", "4", "5"].map { .element($0, 1) })
  }

  @Test("UTF-16 and UTF-32 are named once", arguments: [1, 1000]) func wideInput(size: Int) {
    func bytes(_ unit: (UInt8) -> [UInt8]) -> [UInt8] { "[1]\n2\n".utf8.flatMap(unit) }
    let wide = bytes { [$0, 0] }
    let inputs = [wide, [0xFF, 0xFE] + wide, [0xFE, 0xFF] + bytes { [0, $0] }, bytes { [0, 0, 0, $0] }]
    for input in inputs {
      expectEqual(read(input, sizes: [size]), [.refused(1, 1)])
    }
  }

  @Test func messagesNameWhatATerminalDoesNotShow() {
    func message(_ input: String, maxDepth: Int = 10) -> String {
      var reader = ElementReader(limit: 100, maxDepth: maxDepth)
      reader.room().copyBytes(from: input.utf8)
      reader.didFill(input.utf8.count)
      reader.finish()
      while let item = reader.next() { if case .flaw(let flaw) = item { return "\(flaw)" } }
      return ""
    }
    expectEqual(message("1\n\u{FEFF}"), "line 2, column 1: not JSON: unexpected byte order mark (U+FEFF)")
    expectEqual(message("[1,\u{FEFF}2]"), "line 1, column 4: not JSON: unexpected byte order mark (U+FEFF)")
    expectEqual(message("{\u{FEFF}}"), "line 1, column 2: not JSON: unexpected byte order mark (U+FEFF)")
    expectEqual(message("1 \u{0}"), "line 1, column 3: not JSON: unexpected zero byte")
    expectEqual(message("7\u{0}"), "line 1, column 1: the input is UTF-16 or UTF-32; convert it to UTF-8")
    expectEqual(message("[[1]]", maxDepth: 0), "line 1, column 2: the element nests deeper than 0 levels")
    expectEqual(message("[1,]"), "line 1, column 4: not JSON: expected a value after the comma")
    expectEqual(message("[,1]"), "line 1, column 2: not JSON: expected a value before the comma")
    expectEqual(message("[1 2]"), "line 1, column 4: not JSON: expected , or ]")
  }

  @Test("memory stays bounded however deep a value is") func depth() {
    let deep = String(repeating: "[", count: 3 << 20)
    expectEqual(read("{\"a\":\(deep)\n7", sizes: [1 << 20], limit: 1000, capacity: 1 << 16).last, .element("7", 2))
  }

  @Test("splitting the input at random does not change the elements") func randomPieces() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    let parts = [
      "{\"a\":1}", "{\n \"b\": [1,\n 2]\n}", "[3, 4]", "\n", " ", "{bad}\n", "\"\\\"\\u00e9\"\n", "[\n", "]", ",", "7 ",
      "\u{FEFF}", "\u{0}", "[[[8]]]",
    ]
    for _ in 0..<300 {
      let input = (0..<Int.random(in: 0...12, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }
        .joined()
      let sizes = (0..<3).map { _ in Int.random(in: 1...30, using: &random) }
      expectEqual(
        read(input, sizes: sizes, maxDepth: 2), read(input, maxDepth: 2),
        "seed \(random.seed), \(input.debugDescription)")
    }
  }
}
