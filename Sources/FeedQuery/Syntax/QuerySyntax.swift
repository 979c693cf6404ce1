/// A query as it was written: `$` or `@` and segments (RFC 9535, section 2.1).
struct QuerySyntax: Equatable, Sendable {
  /// `$` rather than `@`.
  var isAbsolute: Bool
  var segments: [SegmentSyntax]

  /// A singular query: it selects at most one node whatever the value (RFC 9535, section 2.3.5.1).
  var isSingular: Bool { segments.allSatisfy(\.isSingular) }
}

/// A child or descendant segment.
struct SegmentSyntax: Equatable, Sendable {
  /// Where the segment is written: bytes into the text of the query.
  var offset: Int
  var isDescendant: Bool
  var selectors: [SelectorSyntax]

  var isSingular: Bool {
    guard !isDescendant, selectors.count == 1 else { return false }
    switch selectors[0] {
    case .name, .index: return true
    case .wildcard, .slice, .filter: return false
    }
  }
}

enum SelectorSyntax: Equatable, Sendable {
  /// The decoded name, UTF-8.
  case name([UInt8])
  case wildcard
  case index(Int)
  case slice(SliceBounds)
  case filter(ConditionSyntax)
}
