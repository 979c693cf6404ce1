import CSQLite

/// The memory that SQLite may allocate for a connection to a file that is not trusted. Used by the thread of the
/// connection, for everything that it does with it; other connections are not affected.
///
/// SQLite calls no progress handler while it compiles a statement. A short schema, such as views that each name the one
/// below twice, can take any amount of memory and time there; the limits of a budget bound both.
///
///     let memory = MemoryBudget()
///     memory.limit(moreBytes: 1 << 20, allocations: 100_000)
///     try memory.use { try database.prepare(sql) }  // throws SQLiteError.outOfMemory beyond a limit
public final class MemoryBudget {
  private let budget = UnsafeMutablePointer<csqlite_budget>.allocate(capacity: 1)

  /// A budget without limits.
  public init() { budget.initialize(to: csqlite_budget(used: 0, max: .max, allocations: .max)) }

  deinit { budget.deallocate() }

  /// The bytes that SQLite holds of those that it allocated in ``use(_:)``.
  public var usedBytes: Int { Int(budget.pointee.used) }

  /// Counts nothing as held any more. Called while the connection is closed: what is left then belongs to connections of other threads
  /// to the same file, which share some memory and may free what this thread allocated.
  public func forget() { budget.pointee.used = 0 }

  /// Lets SQLite allocate `moreBytes` above what it holds now, in at most so many allocations. Replaces the limits of
  /// before. The time of a compilation is about proportional to its allocations.
  public func limit(moreBytes: Int, allocations: Int = .max) {
    budget.pointee.max = Int64(usedBytes + moreBytes)
    budget.pointee.allocations = Int64(allocations)
  }

  /// Calls `body` with the limits in force. Calls do not nest.
  public func use<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    csqlite_use_budget(budget)
    defer { csqlite_use_budget(nil) }
    return try body()
  }
}
