/// The memory of the snapshots of one owner, in bytes.
///
/// A snapshot copies no rows when it is made. Before a change of a row that was not read yet, it captures the row, and keeps
/// the former version of the element. So its memory grows while feeds change.
///
///     let all = SnapshotMemory()
///     let memory = SnapshotMemory(partOf: all)
///     let snapshot = feed.makeSnapshot(chargedTo: memory)
///
/// A version that several snapshots keep is charged for each of them: nobody knows which one will be the last. Only the
/// engine's thread may use it.
public final class SnapshotMemory {
  public private(set) var bytes = 0
  /// All bytes that were ever charged. Their growth is the work of making snapshots.
  public private(set) var charged = 0
  private let total: SnapshotMemory?

  public init(partOf total: SnapshotMemory? = nil) { self.total = total }

  /// Charges so many bytes until the result is released.
  public func hold(_ count: Int) -> Share { Share(count, of: self) }

  /// Bytes that are charged as long as the share exists.
  public final class Share {
    private let memory: SnapshotMemory
    private let bytes: Int

    fileprivate init(_ bytes: Int, of memory: SnapshotMemory) {
      (self.memory, self.bytes) = (memory, bytes)
      memory.add(bytes)
    }

    deinit { memory.add(-bytes) }
  }

  func add(_ count: Int) {
    bytes += count
    if count > 0 { charged &+= count }
    assert(bytes >= 0, "more was released than charged")
    total?.add(count)
  }
}

/// The memory of rows that their feed has given up and only snapshots keep: the feed was undefined, redefined or changed as a
/// whole while they were read (`Protocol/limits.md`, "What a user holds").
///
/// One of the snapshots is charged for all of it; when that one ends, another. So the memory is charged once as long as it is
/// kept, whichever snapshot is the last.
///
/// Invariant: `share` is charged to the first holder that is left.
final class AbandonedRows {
  private let bytes: Int
  /// What is charged for each snapshot; nil when the snapshot has ended.
  private var holders: [SnapshotMemory?] = []
  /// The index of the holder that is charged.
  private var payer = 0
  private var share: SnapshotMemory.Share?

  private init(_ bytes: Int) { self.bytes = bytes }

  /// Charges the unfinished snapshots of trees for `bytes` and the memory of their trees. Their feed gives up the trees now, and
  /// what the bytes stand for. Snapshots that nobody is charged for do not count. O(trees + snapshots).
  static func charge(_ bytes: Int, for trees: some Sequence<PositionTree>) {
    let kept = trees.filter(\.hasChargedSnapshots)
    if kept.isEmpty { return }
    let rows = AbandonedRows(kept.reduce(bytes) { $0 + $1.byteCount })
    for tree in kept { tree.abandon(rows) }
  }

  /// Adds a snapshot that is charged to `memory`. Returns its number for ``leave(_:)``.
  func add(_ memory: SnapshotMemory) -> Int {
    holders.append(memory)
    if share == nil { share = memory.hold(bytes) }
    return holders.count - 1
  }

  /// A snapshot has ended. O(1), amortized over the holders.
  func leave(_ holder: Int) {
    holders[holder] = nil
    if holder != payer { return }
    share = nil
    while payer < holders.count {
      if let memory = holders[payer] { return share = memory.hold(bytes) }
      payer += 1
    }
  }
}
