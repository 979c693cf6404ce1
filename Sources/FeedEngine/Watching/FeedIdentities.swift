import FeedChange
import FeedJSON
import FeedModel

/// The identities of the rows of a feed that is watched with `"ids": true`, and of the rows that its recent changes removed
/// (Protocol/README.md, "Identities").
///
/// The identities are read once, when the first such watch begins: at once from a short feed, in parts from a snapshot of a
/// long one. From then on each commit brings them up to date. They stay for a while after the last such watch has ended, so
/// that one that resumes is told what left meanwhile.
///
/// Invariant: if ready, `rows` are those of `revision`, and `records` has what the changes after `base` removed, if anything.
final class FeedIdentities {
  private enum State {
    /// Nothing is known.
    case none
    /// The rest of a snapshot is being read. Changes of the feed since then are not in `rows`.
    case reading(FeedSnapshot)
    case ready
  }

  private struct Record {
    /// The feed's revision after the change.
    let to: UInt64
    let removed: RowIdentities.Removed
    let bytes: Int
  }

  private var feed: Feed
  private var state = State.none
  private var rows = RowIdentities()
  /// The revision of `rows`.
  private var revision: UInt64 = 0
  /// The revision from which on all removed rows are known.
  private var base: UInt64 = 0
  private var records: [Record] = []
  private var recordBytes = 0
  /// The memory that was charged for last.
  private var chargedBytes = 0
  /// The watches that pay for the memory.
  private(set) var payers = Payers()

  init(of feed: Feed) { self.feed = feed }

  /// Whether a long feed is being read.
  var isReading: Bool { if case .reading = state { true } else { false } }

  /// Whether the identities of the present rows are known.
  var isReady: Bool { if case .ready = state { revision == feed.revision } else { false } }

  /// Whether nothing is known or read.
  var isForgotten: Bool { if case .none = state { true } else { false } }

  /// The memory in bytes. That of a feed that is being read is estimated.
  var bytes: Int { isReading ? feed.count * 32 : rows.bytes + recordBytes }

  /// Whether the memory has become much larger, or much smaller, than what was charged for.
  var isChargedWrong: Bool { max(bytes, chargedBytes) > 2 * min(bytes, chargedBytes) + (64 << 10) }

  /// Records that the present memory is charged for.
  func didCharge() { chargedBytes = bytes }

  /// Follows what remains of the feed, which is gone. Nobody pays any more, because nothing is known.
  func keepRemains(_ remains: Feed) {
    feed = remains
    payers = Payers()
    forget()
  }

  // MARK: Reading the feed

  /// Reads the identities of all rows, unless they are known. Returns the rows that were read at once.
  /// - Parameters:
  ///   - fewRows: the rows that are read at once. Those of a longer feed are read by `read(_:)`.
  ///   - memory: what a snapshot of the rows is charged to.
  func begin(fewRows: Int, chargedTo memory: SnapshotMemory) -> Int {
    switch state {
    case .ready where revision == feed.revision: return 0
    case .reading: return 0
    case .none, .ready: break
    }
    forget()
    guard feed.count <= fewRows else {
      state = .reading(feed.makeSnapshot(chargedTo: memory))
      return 0
    }
    for section in feed.sections {
      rows.appendSection()
      var texts: [String?] = []
      texts.reserveCapacity(section.count)
      section.forEach(in: 0..<section.count) { texts.append($0.element.identityText) }
      rows.append(texts)
    }
    didRead(as: feed.revision)
    return feed.count
  }

  /// Reads the rest of the snapshot, and follows what changed meanwhile. If that is more than the history of the feed has, the
  /// identities are not known.
  /// - Parameters:
  ///   - changes: composes the changes of the feed from a revision until now, without a stop.
  ///   - pace: lets the reading stop between two rows. The feed may change meanwhile.
  func read(_ pace: Pace, changes: (UInt64) -> Change?) {
    guard case .reading(let snapshot) = state else { return }
    for section in snapshot.sectionCounts.indices {
      rows.appendSection()
      var left = Int(snapshot.sectionCounts[section])
      while left > 0 {
        var texts: [String?] = []
        let count = snapshot.next(max: min(left, Self.rowsPerStep)) { texts.append($0.element.identityText) }
        // Another watch ended the reading.
        guard case .reading(let current) = state, current === snapshot, count > 0 else { return }
        rows.append(texts)
        left -= count
        pace.didWrite(bytes: count * Self.bytesPerRow)
        guard case .reading(let current) = state, current === snapshot else { return }
      }
    }
    guard let change = changes(snapshot.revision) else { return forget() }
    _ = rows.apply(change) { feed.element(at: $0).identityText }
    didRead(as: feed.revision)
  }

  private static let rowsPerStep = 64
  /// The bytes that take as long to write as a row to read.
  private static let bytesPerRow = 256

  private func didRead(as revision: UInt64) {
    state = .ready
    (self.revision, base) = (revision, revision)
  }

  func forget() {
    state = .none
    rows = RowIdentities()
    records = []
    recordBytes = 0
  }

  // MARK: Changes

  /// Follows a commit that changed the feed.
  /// - Parameters:
  ///   - most: the bytes of recent changes that are kept.
  ///   - pace: lets the work stop. The last watch may end meanwhile, and everything be forgotten.
  func didChange(by change: borrowing Change, from: UInt64, bytes most: Int, _ pace: Pace) {
    guard case .ready = state else { return }
    guard from == revision, !feed.isGone else { return forget() }
    // The rows are taken out, so that nothing that runs during a stop changes or copies them.
    var current = RowIdentities()
    swap(&current, &rows)
    let removed = current.apply(change, step: { pace.didWriteRows() }) { feed.element(at: $0).identityText }
    guard case .ready = state else { return }
    rows = current
    revision = feed.revision
    if removed.rows.isEmpty && removed.sections.isEmpty { return }
    let record = Record(to: revision, removed: removed, bytes: removed.bytes + MemoryLayout<Record>.stride)
    records.append(record)
    recordBytes += record.bytes
    if recordBytes > most { trim(bytes: most / 2) }
  }

  /// Discards the oldest records, until the others have at most so many bytes.
  private func trim(bytes most: Int) {
    var (count, left) = (0, recordBytes)
    while count < records.count - 1, left > most {
      left -= records[count].bytes
      count += 1
    }
    discardRecords(count)
  }

  /// Discards the records of changes that the history has lost, once they are half of all: no watch resumes from before them.
  /// Amortized O(1) for each record.
  func trimToHistory() {
    guard let base = feed.history?.base else { return }
    while !records.isEmpty, records[records.count / 2].to <= base { discardRecords(records.count / 2 + 1) }
  }

  private func discardRecords(_ count: Int) {
    if count == 0 { return }
    recordBytes -= records[..<count].reduce(0) { $0 + $1.bytes }
    base = records[count - 1].to
    records.removeFirst(count)
  }

  /// What the last commit removed; nil if unknown. A delta that is encoded in parts may ask after that was discarded.
  var removedLast: RowIdentities.Removed? {
    guard isReady, base < revision else { return nil }
    return records.last?.to == revision ? records.last?.removed : RowIdentities.Removed()
  }

  /// What was removed since a revision; nil if unknown.
  ///
  /// The feed has its present revision. The result can be asked for while it changes.
  func past(since from: UInt64) -> PastIdentities? {
    guard isReady, from >= base else { return nil }
    let first = records.indices.partitionPoint { records[$0].to <= from }
    let removed = records[first...].map { ($0.to, $0.removed) }
    return PastIdentities(rows: rows, removed: Dictionary(uniqueKeysWithValues: removed))
  }
}

/// The identities of the rows of a feed at some revision, and of those that its last changes removed.
struct PastIdentities {
  fileprivate var rows: RowIdentities
  /// By the revisions after the changes.
  fileprivate let removed: [UInt64: RowIdentities.Removed]

  /// Returns the rows that the changes of a history after revision `from` removed together; nil if the history has lost them.
  /// - Parameters:
  ///   - change: the composition of the changes.
  ///   - revision: the revision of the rows, after the last one of the changes.
  ///   - pace: lets the work stop. The feed may change meanwhile.
  consuming func removed(
    by change: borrowing Change, from: UInt64, to revision: UInt64, in feed: Feed, _ pace: Pace? = nil
  ) -> RowIdentities.Removed? {
    if change.deleted.isEmpty && change.sectionsDeleted.isEmpty { return RowIdentities.Removed() }
    var changes: [(change: Change, to: UInt64)] = []
    var reached = from
    while reached < revision {
      guard let history = feed.history, history.reaches(reached),
        let next = history.change(at: history.place(after: reached))
      else { return nil }
      changes.append(next)
      reached = next.to
      pace?.didCompose()
    }
    while let (change, to) = changes.popLast() {
      rows.undo(change, removed[to] ?? RowIdentities.Removed())
      pace?.didCompose()
    }
    return rows.removed(by: change)
  }
}
