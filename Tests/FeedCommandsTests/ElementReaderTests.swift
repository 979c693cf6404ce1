import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

@Suite("reading elements from a stream") struct ElementReaderTests {
  private enum Piece: Equatable {
    case element(String, Int)
    case malformed(Int, Int)
    case tooLong(Int)
  }

  /// Reads `input` in pieces of these sizes, cyclically.
  private func read(_ input: String, sizes: [Int] = [1000], limit: Int = 1000, capacity: Int = 16) -> [Piece] {
    var reader = ElementReader(limit: limit, capacity: capacity)
    var pieces: [Piece] = []
    func drain(_ reader: inout ElementReader) {
      while let item = reader.next() {
        switch item {
        case .element(let view, let line): pieces.append(.element(String(decoding: view.text, as: UTF8.self), line))
        case .malformed(let line, let column, _): pieces.append(.malformed(line, column))
        case .tooLong(let line): pieces.append(.tooLong(line))
        }
      }
    }
    var rest = Array(input.utf8)[...]
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
    #expect(
      read("{}\n\n  {\"a\": [1, 2]} \r\n \t \n7", sizes: [size]) == [
        .element("{}", 1), .element("{\"a\": [1, 2]}", 3), .element("7", 5),
      ])
    #expect(
      read("{}{\"id\":1}\"x\" 5 true\n", sizes: [size]) == [
        .element("{}", 1), .element("{\"id\":1}", 1), .element("\"x\"", 1), .element("5", 1), .element("true", 1),
      ])
    #expect(
      read("{\n  \"id\": 1\n}\n{\n  \"id\": 2\n}\n", sizes: [size]) == [
        .element("{\n  \"id\": 1\n}", 1), .element("{\n  \"id\": 2\n}", 4),
      ])
    #expect(
      read("[1, [2], {\"a\":\"]\"}]\n[]\n9", sizes: [size]) == [
        .element("1", 1), .element("[2]", 1), .element("{\"a\":\"]\"}", 1), .element("9", 3),
      ])
    #expect(read("", sizes: [size]) == [])
    #expect(read("\n", sizes: [size]) == [])
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
    #expect(
      read(input, sizes: [size]) == [
        .element("{\"id\":1}", 1), .element("{\"id\":2}", 2), .element("{\"id\":3}", 3),
        .element("{\n  \"id\": 4\n}", 4), .element("{\"id\":5}", 6), .malformed(7, 9), .element("{\"id\":7}", 8),
        .malformed(11, 3), .element("{\"id\":10}", 12),
      ])
  }

  @Test("an error is reported with line and column, and reading continues with the next line", arguments: [1, 4, 1000])
  func mistakes(size: Int) {
    #expect(read("{bad\n{\"id\":1}\n", sizes: [size]) == [.malformed(1, 2), .element("{\"id\":1}", 2)])
    #expect(read("{\"id\":}\n2\n", sizes: [size]) == [.malformed(1, 7), .element("2", 2)])
    // An incomplete line does not affect the next one.
    #expect(read("{\"id\":1\n{\"id\":2}\n", sizes: [size]) == [.malformed(2, 1), .element("{\"id\":2}", 2)])
    #expect(read("{\n  \"id\": nul\n}\n{\"id\":2}", sizes: [size]).last == .element("{\"id\":2}", 4))
    #expect(
      read("[1 2]\n3", sizes: [size]) == [.element("1", 1), .malformed(1, 4), .element("3", 2), .malformed(2, 2)])
    #expect(read("1,2\n3", sizes: [size]) == [.element("1", 1), .malformed(1, 2), .element("3", 2)])
    #expect(read("{\"id\":", sizes: [size]) == [.malformed(1, 7)])
    #expect(read("[1,\n2", sizes: [size]) == [.element("1", 1), .element("2", 2), .malformed(2, 2)])
  }

  @Test("an element that is too long is discarded and the others are read", arguments: [1, 7, 1000]) func longElements(
    size: Int
  ) {
    let long = "\"" + String(repeating: "x", count: 50) + "\""
    #expect(
      read("1\n\(long)\n2\n\(long)", sizes: [size], limit: 20) == [
        .element("1", 1), .tooLong(2), .element("2", 3), .tooLong(4),
      ])
    let fitting = "\"" + String(repeating: "x", count: 18) + "\""
    #expect(read("   \(fitting)\n", sizes: [size], limit: 20) == [.element(fitting, 1)])
    #expect(read(fitting, sizes: [size], limit: 19) == [.tooLong(1)])
  }

  @Test("splitting the input at random does not change the elements") func randomPieces() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    let parts = [
      "{\"a\":1}", "{\n \"b\": [1,\n 2]\n}", "[3, 4]", "\n", " ", "{bad}\n", "\"\\\"\\u00e9\"\n", "[\n", "]", ",", "7 ",
    ]
    for _ in 0..<300 {
      let input = (0..<Int.random(in: 0...12, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }
        .joined()
      let sizes = (0..<3).map { _ in Int.random(in: 1...30, using: &random) }
      #expect(read(input, sizes: sizes) == read(input), "seed \(random.seed), \(input.debugDescription)")
    }
  }
}
