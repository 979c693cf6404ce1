import FeedJSON

/// A partition of all code points into classes: the members of a class belong to the same sets of a regular expression.
struct CodePointClasses: Sendable {
  /// A member of each class.
  private(set) var examples: [UInt32] = [0]
  /// The class of each ASCII code point.
  private(set) var ascii: [UInt16]
  /// The first code points of the intervals, ascending from 0, and the class of each interval.
  private(set) var starts: [UInt32] = [0]
  private(set) var intervalClasses: [UInt16] = [0]

  /// The steps that computing the classes took.
  private(set) var work = 0

  /// Creates one class of all code points.
  init() {
    ascii = Array(repeating: 0, count: 128)
  }

  /// Creates the smallest partition in which each set is a union of classes. O(ranges log ranges + classes).
  /// - Throws: a limit if there are too many classes.
  init(distinguishing sets: [CodePointSet]) throws(RegexpFailure) {
    self.init()
    let edges = Self.edges(of: sets)
    var known: [[Int32]: UInt16] = [:]
    var active: Set<Int32> = []
    (examples, starts, intervalClasses) = ([], [], [])
    var index = 0
    while index < edges.count {
      let start = edges[index].codePoint
      while index < edges.count, edges[index].codePoint == start {
        if edges[index].begins { active.insert(edges[index].set) } else { active.remove(edges[index].set) }
        index += 1
      }
      guard start <= CodePointSet.last else { break }
      work += active.count + 1
      guard work <= QueryLimits.regexpClassWork, known.count < Int(UInt16.max) else { throw Self.tooMany }
      let signature = active.sorted()
      let next = UInt16(known.count)
      let number = known[signature] ?? next
      if number == next {
        known[signature] = next
        examples.append(start)
      }
      starts.append(start)
      intervalClasses.append(number)
    }
    ascii = (0..<128).map { search(UInt32($0)) }
  }

  private static let tooMany = RegexpFailure.limit(
    QueryError(offset: 0, message: "the expression has too many different character classes; use fewer or smaller ones")
  )

  private typealias Edge = (codePoint: UInt32, set: Int32, begins: Bool)

  /// The first code points of ranges and those after their ends, ascending, and 0.
  private static func edges(of sets: [CodePointSet]) -> [Edge] {
    var edges: [Edge] = [(0, -1, false)]
    for (index, set) in sets.enumerated() {
      for range in set.ranges {
        edges.append((range.lowerBound, Int32(index), true))
        edges.append((range.upperBound + 1, Int32(index), false))
      }
    }
    return edges.sorted { $0.codePoint < $1.codePoint }
  }

  /// The class of a code point. O(log intervals).
  func search(_ codePoint: UInt32) -> UInt16 {
    starts.withUnsafeBufferPointer { starts in
      intervalClasses[starts.indices.partitionPoint { starts[$0] <= codePoint } &- 1]
    }
  }
}

extension CodePointClasses {
  /// The tables as raw memory, for the inner loop.
  struct Tables {
    let ascii: UnsafePointer<UInt16>
    let starts: UnsafeBufferPointer<UInt32>
    let intervalClasses: UnsafePointer<UInt16>

    /// Returns the class of the code point at `position` and advances past it, at most to `end`.
    ///
    /// A surrogate in three bytes is a code point like any other. A truncated sequence has some class.
    @inline(__always)
    func next(_ position: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
      let lead = position.pointee
      position += 1
      if lead < 0x80 { return Int(ascii[Int(lead)]) }
      return nextBeyondASCII(lead, &position, end)
    }

    private func nextBeyondASCII(
      _ lead: UInt8, _ position: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>
    ) -> Int {
      let following = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3
      var codePoint = UInt32(lead) & (0x3F &>> UInt32(following))
      for _ in 0..<following where position < end {
        codePoint = codePoint &<< 6 | UInt32(position.pointee & 0x3F)
        position += 1
      }
      return Int(intervalClasses[starts.indices.partitionPoint { starts[$0] <= codePoint } &- 1])
    }
  }

  func withTables<Result>(_ body: (Tables) -> Result) -> Result {
    ascii.withUnsafeBufferPointer { ascii in
      starts.withUnsafeBufferPointer { starts in
        intervalClasses.withUnsafeBufferPointer { classes in
          // None of the three is ever empty.
          body(
            Tables(
              ascii: ascii.baseAddress.unsafelyUnwrapped, starts: starts,
              intervalClasses: classes.baseAddress.unsafelyUnwrapped))
        }
      }
    }
  }
}
