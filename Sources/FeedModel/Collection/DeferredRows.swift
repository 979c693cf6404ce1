/// Which bins hold which elements while a collection is being filled whose rows are put in order at the end.
///
/// Rows that sort alike stand in the order in which they came into their bin, or went elsewhere in it, so that order is all that
/// must be known of each.
struct DeferredRows {
  /// For every bin, by the elements' handles, when the row came in; 0 for elements that are not in the bin.
  private var arrivals: [[UInt32]]
  private var last: UInt32 = 0

  init(bins: Int) {
    arrivals = [[UInt32]](repeating: [], count: bins)
  }

  func holds(_ handle: UInt32, in bin: Int) -> Bool { arrival(of: handle, in: bin) > 0 }

  func arrival(of handle: UInt32, in bin: Int) -> UInt32 {
    Int(handle) < arrivals[bin].count ? arrivals[bin][Int(handle)] : 0
  }

  /// The row comes in behind all others that sort alike.
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
