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
