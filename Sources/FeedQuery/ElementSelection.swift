/// Rows of an array, from a first one in equal steps, forwards or backwards.
public struct ElementSelection: Sequence, IteratorProtocol, Sendable {
  private var row: Int
  private let step: Int
  /// How many rows are left.
  public private(set) var count: Int

  init(first: Int, step: Int, count: Int) {
    row = first
    self.step = step
    self.count = count
  }

  public mutating func next() -> Int? {
    guard count > 0 else { return nil }
    count -= 1
    let result = row
    // Behind the last row the sum may pass the range of Int, and is not used.
    row = result &+ step
    return result
  }
}
