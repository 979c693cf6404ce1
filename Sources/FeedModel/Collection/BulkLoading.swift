/// Bulk loading of an empty collection: rows are sorted once at the end, which costs a fraction of finding each place.
extension CollectionState {
  /// Starts deferred mode of an empty state: updates only record which bins hold an element.
  /// - Parameter count: the number of elements that are expected. What grows to it later would be moved at once.
  func deferRows(count: Int, _ pace: Pace) {
    deferred = DeferredRows(bins: bins.count, count: count)
    reserve(count, pace)
  }

  /// Records the verdicts of the bins; the deferred form of ``placeRows(_:_:_:)``.
  func noteVerdicts(_ handle: UInt32, _ text: ElementText) {
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
      rows.reserveCapacity(elements.count)
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
      bins[bin].section.rows.append(rows.count, pace) { (rows[$0].handle, rows[$0].key) }
      keyed?.adopt(pace)
    }
  }
}

/// The bins that hold each element while a collection is bulk loaded and its rows are not sorted yet.
///
/// Rows with equal keys are in the order in which they came or changed their key, so recording that is enough.
struct DeferredRows {
  /// For every bin and handle, the number of the arrival; 0 if the element is not in the bin.
  private var arrivals: [[UInt32]]
  private var last: UInt32 = 0

  init(bins: Int, count: Int) {
    arrivals = [[UInt32]](repeating: [], count: bins)
    for bin in arrivals.indices { arrivals[bin].reserveCapacity(count) }
  }

  func holds(_ handle: UInt32, in bin: Int) -> Bool { arrival(of: handle, in: bin) > 0 }

  func arrival(of handle: UInt32, in bin: Int) -> UInt32 {
    Int(handle) < arrivals[bin].count ? arrivals[bin][Int(handle)] : 0
  }

  /// Places the row after all others with an equal key.
  mutating func arrive(_ handle: UInt32, in bin: Int) {
    while arrivals[bin].count <= Int(handle) { arrivals[bin].append(0) }
    last &+= 1
    arrivals[bin][Int(handle)] = last
  }

  mutating func leave(_ handle: UInt32, _ bin: Int) {
    if Int(handle) < arrivals[bin].count { arrivals[bin][Int(handle)] = 0 }
  }

  mutating func leave(_ handle: UInt32) { for bin in arrivals.indices { leave(handle, bin) } }
}
