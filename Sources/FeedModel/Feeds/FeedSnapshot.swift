/// One section of a feed as it was when the snapshot was made.
public final class SectionSnapshot {
  public let name: String
  /// Rows of the section at that moment.
  public let count: Int
  private let rows: PositionSnapshot

  init(name: String, rows: PositionSnapshot) {
    self.name = name
    self.rows = rows
    count = rows.count
  }

  /// The row that `next` hands out next.
  public var position: Int { rows.position }

  /// Hands out up to `max` further elements in order; each is valid during its call only. Returns how many there were.
  public func next(max: Int, _ body: (ElementText) -> Void) -> Int {
    rows.next(max: max) { pattern in
      if let text = ElementText(bitPattern: pattern) { body(text) }
    }
  }
}

/// A feed as it was at one revision, read in parts while the feed goes on changing.
///
/// Making one copies no rows; changes made while it lives preserve what it has yet to read.
public final class FeedSnapshot {
  public let sections: [SectionSnapshot]
  public let revision: UInt64

  init(sections: [SectionSnapshot], revision: UInt64) {
    self.sections = sections
    self.revision = revision
  }
}
