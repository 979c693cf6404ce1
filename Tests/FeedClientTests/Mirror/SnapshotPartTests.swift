import FeedChange
import FeedJSON
import TestSupport
import Testing

@testable import FeedClient

/// Parts of snapshots: within sections and over their ends, and parts that do not follow.
struct SnapshotPartTests {
  private struct State: Equatable {
    var name: String
    var elements: [String]
    var types: [String?]

    init(_ section: Mirror.Section) {
      name = section.name
      elements = section.rows.map { text($0.element) }
      types = section.rows.map(\.type)
    }

    init(_ vector: JSONValue) {
      name = vector["name"].string ?? ""
      elements = vector["elements"].elements.map(\.text)
      types = vector["types"].elements.map(\.string)
    }
  }

  @Test(arguments: try JSONValue.cases("snapshots"))
  func vectors(_ vector: JSONValue) throws {
    let sections = vector["sections"].elements.map {
      SectionSummary(name: $0["name"].string ?? "", count: $0["count"].int ?? -1)
    }
    let parts = try vector["parts"].elements.map { part in
      try withJSON(utf8("{\"feed\":\"f\"," + part.text.dropFirst())) { try SnapshotPart($0) }
    }
    let revision = try require(parts.first?.revision)
    var mirror = Mirror(WatchStart(feed: "f", epoch: "e", revision: revision, resumed: false, sections: sections))
    for (place, part) in parts.enumerated() {
      if place == vector["fault"].int {
        #expect(throws: FeedFault.self) { try mirror.apply(part) }
      } else {
        try expectEqual(mirror.apply(part), part.isLast)
      }
    }
    if vector["fault"].int == nil {
      expectEqual(mirror.sections.map(State.init), vector["after"].elements.map(State.init))
    }
  }

  /// All small layouts, all ways to divide their rows into parts, and after each part all parts that might follow: only those
  /// are accepted that begin at the place of the next row and have no more rows than are left.
  @Test func allPartsOfSmallLayouts() throws {
    var layouts: [[Int]] = [[]]
    for _ in 0..<3 { layouts += layouts.flatMap { layout in (0...2).map { layout + [$0] } } }
    for layout in Set(layouts) {
      let sections = layout.enumerated().map { SectionSummary(name: "\($0)", count: $1) }
      let start = WatchStart(feed: "f", epoch: "e", revision: 7, resumed: false, sections: sections)
      try follow(Mirror(start), layout, received: 0)
    }
  }

  private func follow(_ mirror: Mirror, _ layout: [Int], received: Int) throws {
    let places = layout.enumerated().flatMap { section, count in
      (0..<count).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
    }
    for section in 0...layout.count {
      for row in 0...3 {
        for count in 0...places.count - received + 1 {
          for isLast in [false, true] {
            let at = IndexPath(section: UInt32(section), row: UInt32(row))
            let end = received + count
            let part = SnapshotPart(
              feed: "f", revision: 7, at: at, elements: (received..<end).map { utf8("\($0)") }, isLast: isLast)
            let before = layout.prefix(section).reduce(0, +) + row
            // A part without rows may also stand at the end of a section.
            let isPlaced = count > 0 ? places.dropFirst(received).first == at : before == received
            let exists = section < layout.count || section == 0 && row == 0
            var next = mirror
            if isPlaced, exists, end <= places.count, !isLast || end == places.count {
              try expectEqual(next.apply(part), isLast, "\(layout), \(received), \(part)")
              if isLast {
                let rows = next.sections.map { $0.rows.map { text($0.element) } }
                expectEqual(rows.map(\.count), layout)
                expectEqual(rows.flatMap { $0 }, places.indices.map { "\($0)" })
              } else if count > 0 {
                try follow(next, layout, received: end)
              }
            } else {
              #expect(throws: FeedFault.misplacedSnapshot(at: at), "\(layout), \(received), \(part)") {
                try next.apply(part)
              }
              expect(next.sections.isEmpty)
            }
          }
        }
      }
    }
  }
}
