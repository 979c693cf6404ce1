extension Range<Int> {
  /// Returns the first index for which `belongsBefore` is false; `upperBound` when there is none.
  ///
  /// The one binary search of the package. `belongsBefore` must be true for a beginning of the range and false for the
  /// rest. O(log count) calls.
  ///
  ///     let place = paths.indices.partitionPoint { paths[$0] < path }
  @inlinable @inline(__always)
  public func partitionPoint(_ belongsBefore: (Int) throws -> Bool) rethrows -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = low &+ (high &- low) / 2
      if try belongsBefore(middle) { low = middle &+ 1 } else { high = middle }
    }
    return low
  }
}
