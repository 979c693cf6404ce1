import FeedJSON

/// A set of code points, as ranges.
///
/// Invariant: the ranges ascend and neither touch nor overlap.
struct CodePointSet: Hashable, Sendable {
  /// The first and last code point of each range.
  private(set) var ranges: [ClosedRange<UInt32>]

  static let last: UInt32 = 0x10FFFF

  /// Creates the union of ranges in any order. O(n log n).
  init(union ranges: [ClosedRange<UInt32>]) {
    var merged: [ClosedRange<UInt32>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let previous = merged.last, range.lowerBound <= previous.upperBound &+ 1 {
        merged[merged.count - 1] = previous.lowerBound...max(previous.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    self.ranges = merged
    checkInvariants()
  }

  init(_ codePoint: UInt32) { ranges = [codePoint...codePoint] }

  var complement: CodePointSet {
    var result: [ClosedRange<UInt32>] = []
    var next: UInt32 = 0
    for range in ranges {
      if range.lowerBound > next { result.append(next...range.lowerBound - 1) }
      next = range.upperBound + 1
    }
    if next <= Self.last { result.append(next...Self.last) }
    return CodePointSet(union: result)
  }

  /// Whether the set has this code point. O(log ranges).
  func contains(_ codePoint: UInt32) -> Bool {
    let place = ranges.indices.partitionPoint { ranges[$0].upperBound < codePoint }
    return place < ranges.count && ranges[place].lowerBound <= codePoint
  }

  /// `.`: everything but line feed and carriage return (RFC 9485, section 5.3).
  static let dot = CodePointSet(union: [0x0A...0x0A, 0x0D...0x0D]).complement

  /// Checks in debug builds that the ranges ascend with a gap between them. O(ranges).
  func checkInvariants() {
    #if CHECK_INVARIANTS
      for (range, next) in zip(ranges, ranges.dropFirst()) {
        precondition(range.upperBound < next.lowerBound && next.lowerBound - range.upperBound > 1)
      }
    #endif
  }
}

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
  init() { ascii = Array(repeating: 0, count: 128) }

  /// Creates the smallest partition in which each set is a union of classes. O(ranges log ranges + classes).
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
      guard work <= QueryLimits.regexpClassWork, known.count < Int(UInt16.max) else { throw .tooManyClasses }
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

/// The sets of `\p{…}`: the general categories of Unicode, from the tables of the standard library.
struct GeneralCategories: Sendable {
  private let sets: [String: CodePointSet]

  /// The only instance. The first use takes about 20 ms.
  static let shared = GeneralCategories()

  /// The set of a category of RFC 9485, such as `L` or `Lu`; nil for other names.
  func set(_ name: String) -> CodePointSet? { sets[name] }

  private init() {
    // Planes 4 to 13 are unassigned in all versions of Unicode so far; planes 15 and 16 are for private use.
    var ranges: [String: [ClosedRange<UInt32>]] = [
      "Cn": [0x40000...0xDFFFF, 0xFFFFE...0xFFFFF, 0x10FFFE...0x10FFFF],
      "Co": [0xF0000...0xFFFFD, 0x100000...0x10FFFD],
    ]
    for part in [0...0xD7FF, 0xE000...0x3FFFF, 0xE0000...0xEFFFF] as [ClosedRange<UInt32>] {
      Self.collect(part, into: &ranges)
    }
    var sets: [String: CodePointSet] = [:]
    for (name, list) in ranges {
      sets[name] = CodePointSet(union: list)
      ranges[String(name.prefix(1)), default: []].append(contentsOf: list)
    }
    for group in ["L", "M", "N", "P", "Z", "S", "C"] { sets[group] = CodePointSet(union: ranges[group] ?? []) }
    self.sets = sets
  }

  /// Adds the code points of `part` to the ranges of their categories.
  private static func collect(_ part: ClosedRange<UInt32>, into ranges: inout [String: [ClosedRange<UInt32>]]) {
    assert(!part.overlaps(0xD800...0xDFFF), "the range has surrogates")
    var (name, first): (String?, UInt32) = (nil, part.lowerBound)
    var current: Unicode.GeneralCategory?
    for codePoint in part {
      guard let category = Unicode.Scalar(codePoint)?.properties.generalCategory, category != current else { continue }
      if let name { ranges[name, default: []].append(first...codePoint - 1) }
      (name, first, current) = (Self.name(category), codePoint, category)
    }
    if let name { ranges[name, default: []].append(first...part.upperBound) }
  }

  private static func name(_ category: Unicode.GeneralCategory) -> String? {
    switch category {
    case .uppercaseLetter: "Lu"
    case .lowercaseLetter: "Ll"
    case .titlecaseLetter: "Lt"
    case .modifierLetter: "Lm"
    case .otherLetter: "Lo"
    case .nonspacingMark: "Mn"
    case .spacingMark: "Mc"
    case .enclosingMark: "Me"
    case .decimalNumber: "Nd"
    case .letterNumber: "Nl"
    case .otherNumber: "No"
    case .connectorPunctuation: "Pc"
    case .dashPunctuation: "Pd"
    case .openPunctuation: "Ps"
    case .closePunctuation: "Pe"
    case .initialPunctuation: "Pi"
    case .finalPunctuation: "Pf"
    case .otherPunctuation: "Po"
    case .mathSymbol: "Sm"
    case .currencySymbol: "Sc"
    case .modifierSymbol: "Sk"
    case .otherSymbol: "So"
    case .spaceSeparator: "Zs"
    case .lineSeparator: "Zl"
    case .paragraphSeparator: "Zp"
    case .control: "Cc"
    case .format: "Cf"
    case .privateUse: "Co"
    case .unassigned: "Cn"
    case .surrogate: nil
    @unknown default: nil
    }
  }
}
