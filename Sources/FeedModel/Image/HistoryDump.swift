import FeedJSON

/// The recent changes of a feed as words, to be stored and read back.
public struct HistoryDump: Equatable, Sendable {
  public struct Record: Equatable, Sendable {
    /// The revision after the change.
    public let to: UInt64
    public let at: Instant
    /// The change, packed as `WordRing` packs it.
    public let words: [UInt32]

    public init(to: UInt64, at: Instant, words: [UInt32]) {
      self.to = to
      self.at = at
      self.words = words
    }
  }

  /// The revision from which the records lead on.
  public let base: UInt64
  public let records: [Record]

  public init(base: UInt64, records: [Record]) {
    self.base = base
    self.records = records
  }
}

extension History {
  /// A history that goes on from a dump; nil when the dump does not hold together.
  convenience init?(_ dump: HistoryDump) {
    self.init(base: dump.base)
    var last = dump.base
    for record in dump.records {
      guard record.to > last, append(words: record.words, to: record.to, at: record.at) else { return nil }
      last = record.to
    }
  }
}

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

  /// Appends the next changes after a revision, up to the image's own, as `HistoryRecords` has them: no more than fit in `most`
  /// bytes, but one at least. Returns the last one's revision; nil when there are no more.
  public func packChanges(
    of bin: Int?, after last: UInt64, upTo revision: UInt64, most: Int, into out: inout ByteBuffer
  ) -> UInt64? {
    kept(bin)?.pack(after: last, upTo: revision, most: most, into: &out)
  }

  private func kept(_ bin: Int?) -> History? {
    guard let bin else { return history }
    return binHistories.indices.contains(bin) ? binHistories[bin] : nil
  }
}
