/// One section of a feed as it was when the snapshot was made, read once from the first row to the last.
public class SectionSnapshot {
  public let name: String
  /// Rows of the section at that moment.
  public let count: Int

  init(name: String, count: Int) {
    self.name = name
    self.count = count
  }

  /// The row that `next` hands out next.
  public var position: Int { count }

  /// Hands out up to `max` further rows in order; each is valid during its call only. Returns how many there were.
  public func next(max: Int, _ body: (Row) -> Void) -> Int { 0 }
}
