/// Bulk loading of an empty collection: rows are sorted once at the end. This costs a fraction of finding each place in
/// a large tree.
extension CollectionState {
  /// Starts deferred mode: updates only record which bins hold an element.
  func deferRows() {
    deferred = DeferredRows(bins: bins.count)
  }

  /// Records the verdicts of the bins; the deferred form of `settle`.
  func note(_ handle: UInt32, _ text: ElementText) {
    for bin in bins.indices {
      switch (deferred?.holds(handle, in: bin) ?? false, verdicts[bin]) {
      case (true, true): if bins[bin].order >= 0 && keyDiffers(handle, text, bin) { deferred?.arrive(handle, in: bin) }
      case (false, true): deferred?.arrive(handle, in: bin)
      case (true, false): deferred?.leave(handle, bin)
      case (false, false): break
      }
    }
  }

  /// Ends deferred mode: sorts the rows of every bin into place. O(n log n).
  func placeRows(_ pace: Pace) {
    guard let deferred else { return }
    self.deferred = nil
    for bin in bins.indices {
      var rows: [(key: UInt64, arrival: UInt32, handle: UInt32)] = []
      elements.forEach { handle in
        let arrival = deferred.arrival(of: handle, in: bin)
        if arrival > 0 { rows.append((key(of: handle, section: bin), arrival, handle)) }
        if handle & 7 == 0 { pace.spend() }
      }
      let order = bins[bin].order
      rows.sort(pace) { a, b in
        if a.key != b.key { return a.key < b.key }
        if order >= 0 {
          let (left, right) = (elements.text(of: a.handle).keys, elements.text(of: b.handle).keys)
          let difference = SortOrder.compare(SortOrder.key(order, in: left), SortOrder.key(order, in: right))
          if difference != 0 { return difference < 0 }
        }
        return a.arrival < b.arrival
      }
      let tree = bins[bin].section.rows
      for (place, row) in rows.enumerated() {
        tree.insert(row.handle, at: tree.count, key: row.key)
        if place & 15 == 0 { pace.spend() }
      }
      keyed?.adopt(pace)
    }
  }
}
