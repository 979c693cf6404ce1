import FeedChange
import FeedJSON
import FeedModel
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The parts of snapshots of all small layouts of sections, compared with the list of all rows: parts within sections, and
/// parts that span sections.
struct SnapshotPartsTests {
  /// The sizes of the text in the rows, repeated.
  private static let sizes: [[Int]] = [[0], [0, 150], [150, 0, 0, 70]]
  /// The target and the limit of a part in bytes: one row, a few, and all.
  private static let parts: [(target: Int, limit: Int)] = [
    (1, 1 << 20), (100, 300), (100, 400), (400, 320), (1 << 16, 450), (1 << 16, 1 << 20),
  ]

  private struct Row: Equatable {
    var path: [Int]
    var text: String
    var type: String
  }

  /// The parts of one snapshot.
  private struct Part {
    var bytes: Int
    var rows: [Row]
    var at: [Int]
    var params: Value
  }

  private static let mostSections = TestEffort.count(3, long: 4)

  /// All lists of up to three sections with up to three rows, four with `scripts/test --long`.
  private static var layouts: [[Int]] {
    let counts = [0, 1, 2, 3]
    var layouts: [[Int]] = [[]]
    var longest: [[Int]] = [[]]
    for _ in 0..<mostSections {
      longest = longest.flatMap { layout in counts.map { layout + [$0] } }
      layouts += longest
    }
    return layouts
  }

  /// A collection with bins, one with sections by value, one with a single bin, and a feed composed of these, of a feed without
  /// sections and of one without rows.
  private func makeHarness(sections: Int) -> (EngineHarness, ConnectionID) {
    let harness = EngineHarness()
    let id = harness.connect()
    let bins = (0..<max(1, sections)).map { #"{"name":"\#($0)","filter":"@.s==\#($0)","sort":[{"by":"$.id"}]}"# }
    for definition in [
      #"{"feed":"bins","kind":"collection","type":"$.t","bins":[\#(bins.joined(separator: ","))]}"#,
      #"{"feed":"keys","kind":"collection","type":"$.t","section":"$.s","bins":[{"name":"a","sort":[{"by":"$.id"}]}]}"#,
      #"{"feed":"flat","kind":"collection","type":"$.t","bins":[{"name":"a","sort":[{"by":"$.s"},{"by":"$.id"}]}]}"#,
      #"{"feed":"list","kind":"array","id":"$.id"}"#,
      #"{"feed":"none","kind":"collection","section":"$.s"}"#,
      #"{"feed":"no-rows","kind":"array"}"#,
      #"{"feed":"pair","kind":"composed","children":["none","no-rows","keys","list","bins"]}"#,
    ] {
      let answer = harness.ask(id, "define", definition)
      expectEqual(answer.first?.contains("error"), false, "\(answer)")
    }
    return (harness, id)
  }

  private func fill(_ harness: EngineHarness, _ id: ConnectionID, _ layout: [Int], _ sizes: [Int], mark: String = "x") {
    var elements: [String] = []
    for (section, count) in layout.enumerated() {
      for _ in 0..<count {
        let number = elements.count
        let text = String(repeating: mark, count: sizes[number % sizes.count])
        elements.append(#"{"id":\#(10 + number),"s":\#(section),"t":"\#(number % 3)","x":"\#(text)"}"#)
      }
    }
    for feed in ["bins", "keys", "flat", "list"] {
      _ = harness.ask(id, "set", #"{"feed":"\#(feed)","elements":[\#(elements.joined(separator: ","))]}"#)
    }
  }

  /// The rows of a feed, as the method `snapshot` tells them.
  private func rows(_ harness: EngineHarness, _ id: ConnectionID, _ feed: String) throws -> [Row] {
    let answer = try require(Value(harness.ask(id, "snapshot", #"{"feed":"\#(feed)"}"#).first ?? "")?["result"])
    return (answer["sections"]?.items ?? []).enumerated().flatMap { place, section in
      let types = section["types"]?.items.map(\.text)
      return (section["elements"]?.items ?? []).enumerated().map { row, element in
        Row(path: [place, row], text: element.text, type: types?[row] ?? "null")
      }
    }
  }

  /// Reads a snapshot in parts.
  ///
  /// - Parameter change: called after the first part.
  private func read(
    _ harness: EngineHarness, _ feed: String, reset: Bool, spanning: Bool, _ size: (target: Int, limit: Int),
    change: () -> Void = {}
  ) throws -> [Part] {
    let channel = harness.engine.channel(of: try harness.engine.catalog.feed(named: feed))
    let cursor = SnapshotCursor(of: channel, reset: reset, spansSections: spanning, chargedTo: SnapshotMemory())
    var parts: [Part] = []
    while !cursor.isDone {
      var out = ByteBuffer()
      cursor.writeParts(to: &out, target: size.target, limit: size.limit)
      var bytes = Array(out.bytes)[...]
      while !bytes.isEmpty {
        let length = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        let text = String(decoding: bytes.dropFirst(4).prefix(length), as: UTF8.self)
        bytes = bytes.dropFirst(4 + length)
        let params = try require(Value(text)?["params"])
        let elements = params["elements"]?.items ?? []
        let types = params["types"]?.items.map(\.text) ?? []
        expectEqual(types.count, elements.count)
        let rows = zip(elements, types).map { Row(path: [], text: $0.text, type: $1) }
        parts.append(Part(bytes: length, rows: rows, at: params["at"]?.path ?? [], params: params))
      }
      if parts.count == 1 { change() }
    }
    return parts
  }

  /// Checks the parts of one snapshot against all rows.
  private func check(
    _ parts: [Part], _ rows: [Row], reset: Bool, spanning: Bool, _ size: (target: Int, limit: Int),
    _ what: @autoclosure () -> String
  ) {
    var left = rows[...]
    for (place, part) in parts.enumerated() {
      let isLast = place == parts.count - 1
      expectEqual(part.at, left.first?.path ?? [0, 0], "\(what())")
      let taken = left.prefix(part.rows.count)
      left = left.dropFirst(part.rows.count)
      expectEqual(part.rows.map(\.text), taken.map(\.text), "\(what())")
      expectEqual(part.rows.map(\.type), taken.map(\.type), "\(what())")
      expectEqual(part.params["last"]?.bool, isLast, "\(what())")
      expectEqual(part.params["reset"]?.bool == true, reset && place == 0, "\(what())")
      expectEqual(part.params["sections"] != nil, reset && place == 0, "\(what())")
      expect(part.rows.count > 0 || rows.isEmpty || reset && place == 0, "\(what())")
      expect(part.bytes <= size.limit || part.rows.count <= 1, "\(what())")
      if !spanning { expect(Set(taken.map(\.path[0])).count <= 1, "\(what())") }
      // A part ends for a reason: its target, its limit or the end of a section.
      guard !isLast, let next = left.first else { continue }
      let isFull =
        taken.reduce(0) { $0 + $1.text.utf8.count + 1 } > size.target
        || part.bytes + next.text.utf8.count + next.type.utf8.count + 64 > size.limit
      expect(isFull || !spanning && next.path[0] > taken.last?.path[0] ?? 0, "\(what())")
    }
    expect(left.isEmpty, "\(what())")
  }

  @Test(arguments: 0...mostSections) func allSmallLayouts(sections: Int) throws {
    let (harness, id) = makeHarness(sections: sections)
    for layout in Self.layouts where layout.count == sections {
      for sizes in Self.sizes {
        fill(harness, id, layout, sizes)
        let shown = try Dictionary(
          uniqueKeysWithValues: ["bins", "keys", "flat", "pair"].map { ($0, try rows(harness, id, $0)) })
        for size in Self.parts {
          var counts: [String: [Int]] = [:]
          for (feed, rows) in shown {
            for (reset, spanning) in [(false, false), (false, true), (true, false), (true, true)] {
              let parts = try read(harness, feed, reset: reset, spanning: spanning, size)
              check(
                parts, rows, reset: reset, spanning: spanning, size,
                "\(feed), \(layout), \(sizes), \(size), reset \(reset), spanning \(spanning)")
              if spanning && !reset { counts[feed] = parts.map(\.rows.count) }
            }
          }
          // The parts of many sections are those of as many rows.
          expectEqual(counts["keys"], counts["flat"], "\(layout), \(sizes), \(size)")
        }
      }
    }
  }

  /// The rows of a snapshot stay those of its revision while the feed changes.
  @Test func feedsChangeBetweenParts() throws {
    let (harness, id) = makeHarness(sections: 3)
    for layout in Self.layouts where layout.count == 3 {
      for size in Self.parts {
        for feed in ["bins", "keys", "pair"] {
          fill(harness, id, layout, [0, 150])
          let rows = try rows(harness, id, feed)
          let parts = try read(harness, feed, reset: false, spanning: true, size) {
            fill(harness, id, Array(layout.reversed()), [3], mark: "y")
          }
          check(parts, rows, reset: false, spanning: true, size, "\(feed), \(layout), \(size)")
        }
      }
    }
  }

  /// Ten thousand sections of one row have the parts of one section with ten thousand rows; without `spanning` each has a part
  /// of its own. The answers are the same.
  @Test func watchesChooseTheParts() throws {
    let (harness, id) = makeHarness(sections: 1)
    let elements = (0..<10_000).map { #"{"id":\#(10_000 + $0),"s":\#(10_000 + $0),"t":"a"}"# }
    for feed in ["keys", "flat"] {
      _ = harness.ask(id, "set", #"{"feed":"\#(feed)","elements":[\#(elements.joined(separator: ","))]}"#)
    }
    func watch(_ feed: String, _ option: String) throws -> (answer: String, parts: [Value]) {
      let frames = harness.ask(harness.connect(), "watch", #"{"feed":"\#(feed)"\#(option)}"#)
      return (try require(frames.first), frames.dropFirst().compactMap { Value($0)?["params"] })
    }
    func sizes(_ parts: [Value]) -> [Int] { parts.map { $0["elements"]?.items.count ?? 0 } }
    let spanning = try watch("keys", #","spanning":true"#)
    let rows = try watch("flat", #","spanning":true"#)
    expectEqual(sizes(rows.parts).reduce(0, +), 10_000)
    expectEqual(sizes(spanning.parts).count, sizes(rows.parts).count)
    expect(sizes(spanning.parts).dropLast().allSatisfy { $0 > 1000 })
    for option in ["", #","spanning":false"#] {
      let within = try watch("keys", option)
      let flat = try watch("flat", option)
      let isSame = within.answer == spanning.answer && flat.parts == rows.parts
      expect(isSame)
      expectEqual(within.parts.count, 10_000)
      expectEqual(sizes(within.parts).max(), 1)
    }
  }

  /// A reset has the parts that its watch asked for, also after the other kind was asked for on the same connection.
  @Test func resetsAskedForByEachWatch() throws {
    let harness = EngineHarness { ($0.maxFrame, $0.maxQueue) = (4096, 1000) }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection","section":"$.s"}"#)
    for spanning in [true, false, true] {
      let frames = harness.ask(watcher, "watch", #"{"feed":"c","spanning":\#(spanning)}"#).compactMap { Value($0) }
      var mirror = try Mirror(require(frames.first?["result"]), since: nil, initial: true, spanning: spanning)
      for frame in frames.dropFirst() { try mirror.take(snapshot: require(frame["params"])) }
      // What the watcher misses exceeds a frame.
      harness.stopped = [watcher]
      for number in 0..<80 {
        let text = "\(spanning)\(number)" + String(repeating: "x", count: 90)
        let element = #"{"id":\#(number % 40),"s":\#(number % 40 % 23),"x":"\#(text)"}"#
        _ = harness.ask(pusher, "update", #"{"feed":"c","element":\#(element)}"#)
      }
      harness.resume(watcher)
      var parts = 0
      for frame in harness.take(watcher).compactMap({ Value($0) }) {
        let params = try require(frame["params"])
        if frame["method"]?.string == "delta" {
          try mirror.take(delta: params)
        } else {
          parts += 1
          try mirror.take(snapshot: params)
        }
      }
      expect(mirror.isLive)
      expect(mirror.resets > 0)
      expect(spanning ? parts < 10 : parts > 20)
      let digest = harness.ask(pusher, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["digest"]?.string
      expectEqual(mirror.digest, digest)
    }
  }

  @Test func spanningIsABoolean() {
    let harness = EngineHarness()
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    let error = Value(harness.ask(id, "watch", #"{"feed":"c","spanning":1}"#).first ?? "")
    expectEqual(error?.errorCode, -32602)
    expectEqual(error?.errorData?["member"]?.string, "spanning")
  }
}
