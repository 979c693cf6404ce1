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
  private let total: SnapshotMemory?

  public init(partOf total: SnapshotMemory? = nil) {
    self.total = total
  }

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
    assert(bytes >= 0, "more was released than charged")
    total?.add(count)
  }
}
