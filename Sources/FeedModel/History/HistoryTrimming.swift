/// A pass over the histories of all feeds that discards recorded changes beyond the limits. One call does a part of it, because a
/// user may define so many feeds and bins that looking at all of them takes longer than a turn may.
///
/// The first round discards what a feed may not keep. If all feeds keep too much after it, a second round leaves each an equal
/// share.
struct HistoryTrimming {
  /// The numbers of feeds and bins that one part looks at: about a millisecond.
  private static let numbersPerPart = 4096
  /// The words of histories that one part moves to smaller memory: about two milliseconds. A history of the default size needs no
  /// more.
  private static let wordsToMove = 3 << 19

  /// Whether a pass has begun and not ended.
  private(set) var isUnderWay = false
  /// The number that is looked at next.
  private var next = 0
  /// The histories that this round found, and their bytes.
  private var found = (histories: 0, bytes: 0)
  /// The bytes that each feed may keep; nil in the first round.
  private var share: Int?

  /// Begins a pass, or begins it again.
  mutating func begin() {
    self = HistoryTrimming()
    isUnderWay = true
  }

  /// Does a part of the pass, if one is under way.
  mutating func advance(over table: FeedTable, _ limits: Limits, before moment: Instant) {
    var (left, words) = (Self.numbersPerPart, Self.wordsToMove)
    while isUnderWay, left > 0 {
      let end = min(next + left, table.numberCount)
      left -= end - next
      for number in next..<max(next, end) {
        guard let history = table.history(ofNumber: number) else { continue }
        history.trim(bytes: share ?? limits.historyBytes, before: moment)
        words -= history.compact(moving: words)
        found.histories += 1
        found.bytes &+= history.bytes
      }
      next = end
      if end == table.numberCount { endRound(limits) }
    }
  }

  private mutating func endRound(_ limits: Limits) {
    isUnderWay = share == nil && found.bytes > limits.maxHistoryBytes
    if isUnderWay { share = limits.maxHistoryBytes / found.histories }
    (next, found) = (0, (0, 0))
  }
}
