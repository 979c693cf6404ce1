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

  init(_ codePoint: UInt32) {
    ranges = [codePoint...codePoint]
  }

  /// The set of all other code points.
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
