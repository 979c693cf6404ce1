/// The bins that hold each element while a collection is bulk loaded and its rows are not sorted yet.
///
/// Rows with equal keys are in the order in which they entered the bin or last changed their key, so recording this
/// order is enough.
struct DeferredRows {
  /// For every bin and handle, the number of the arrival; 0 if the element is not in the bin.
  private var arrivals: [[UInt32]]
  private var last: UInt32 = 0

  init(bins: Int) {
    arrivals = [[UInt32]](repeating: [], count: bins)
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

  mutating func leave(_ handle: UInt32) {
    for bin in arrivals.indices { leave(handle, bin) }
  }
}
