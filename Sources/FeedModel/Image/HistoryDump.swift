import FeedJSON

/// The recent changes of a feed in stored form: packed as words.
///
/// Invariant of a valid dump: the revisions of the records ascend and are greater than `base`.
public struct HistoryDump: Equatable, Sendable {
  /// One stored change.
  public struct Record: Equatable, Sendable {
    /// The revision after the change.
    public let to: UInt64
    public let at: Instant
    /// The change as packed by `WordRing`.
    public let words: [UInt32]

    public init(to: UInt64, at: Instant, words: [UInt32]) {
      self.to = to
      self.at = at
      self.words = words
    }
  }

  /// The revision before the first record.
  public let base: UInt64
  public let records: [Record]

  public init(base: UInt64, records: [Record]) {
    self.base = base
    self.records = records
  }
}

extension History {
  /// Creates a history with the changes of a dump. Returns nil if the dump is not valid.
  convenience init?(_ dump: HistoryDump) {
    self.init(base: dump.base)
    var last = dump.base
    for record in dump.records {
      guard record.to > last, append(words: record.words, to: record.to, at: record.at) else { return nil }
      last = record.to
    }
  }
}

/// The recorded changes of a feed in an image, read in parts while the feed changes.
extension FeedImage {
  /// The feeds with a history: nil stands for the feed itself, an index for a bin of a collection.
  public var remembering: [Int?] {
    let bins = binHistories.indices.filter { binHistories[$0] != nil }
    return (history == nil ? [] : [nil]) + bins
  }

  /// The revision before the first recorded change.
  ///
  /// It can rise while the image is read, because old changes are discarded. Read it after the last part, and ignore
  /// the changes up to it.
  public func historyBase(of bin: Int?) -> UInt64? {
    kept(bin)?.base
  }

  /// Appends the changes after revision `last` up to `revision` to `out` as records: at least one, and at most `most`
  /// bytes. Returns the revision of the last record appended; nil if there is none.
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
