/// The recent changes of an image's feed, read in parts while the feed goes on changing.
extension FeedImage {
  /// Those that keep recent changes: nil stands for the feed itself, a number for the bin of a collection.
  public var remembering: [Int?] {
    let bins = binHistories.indices.filter { binHistories[$0] != nil }
    return (history == nil ? [] : [nil]) + bins
  }

  /// The revision from which the kept changes lead on. It rises while the image is being read, so it counts when the last
  /// part was read: what was read of changes before it is out of reach.
  public func historyBase(of bin: Int?) -> UInt64? {
    kept(bin)?.base
  }

  /// The next changes after a revision, up to the image's own, of about `maxWords` words; empty when there are no more.
  public func changes(of bin: Int?, after last: UInt64, upTo revision: UInt64, maxWords: Int) -> [HistoryDump.Record] {
    kept(bin)?.records(after: last, upTo: revision, maxWords: maxWords) ?? []
  }

  private func kept(_ bin: Int?) -> History? {
    guard let bin else { return history }
    return binHistories.indices.contains(bin) ? binHistories[bin] : nil
  }
}
