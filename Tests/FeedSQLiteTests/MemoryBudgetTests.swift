import FeedSQLite
import TestSupport
import Testing

@Suite("A budget of memory")
struct MemoryBudgetTests {
  /// A statement that takes about as many allocations and bytes as there are terms.
  private func sum(_ terms: Int) -> String {
    "SELECT " + Array(repeating: "random()", count: terms).joined(separator: ", ")
  }

  private func code(_ body: () throws(SQLiteError) -> Void) -> Int32? {
    do throws(SQLiteError) {
      try body()
      return nil
    } catch {
      return error.code
    }
  }

  private func compile(_ terms: Int, in database: Database) -> Int32? {
    code { () throws(SQLiteError) in _ = try database.prepare(sum(terms), isKept: false) }
  }

  @Test func allocationsBeyondTheBytesFail() throws {
    let memory = MemoryBudget()
    let database = try memory.use { () throws(SQLiteError) in try Database(path: ":memory:", access: .create) }
    let used = memory.usedBytes
    expect(used > 0)
    memory.limit(moreBytes: 200_000)
    expectEqual(memory.use { compile(20, in: database) }, nil)
    expect(memory.use { compile(2000, in: database) } == SQLiteError.outOfMemory)
    expect(memory.usedBytes < used + 200_000)
    memory.limit(moreBytes: 10_000_000)
    expectEqual(memory.use { compile(2000, in: database) }, nil)
  }

  @Test func allocationsBeyondTheirNumberFail() throws {
    let memory = MemoryBudget()
    let database = try Database(path: ":memory:", access: .create)
    database.distrustSchema(maxStatementBytes: 1 << 20)
    memory.limit(moreBytes: 10_000_000, allocations: 500)
    expectEqual(memory.use { compile(20, in: database) }, nil)
    expect(memory.use { compile(2000, in: database) } == SQLiteError.outOfMemory)
    memory.limit(moreBytes: 10_000_000, allocations: 100_000)
    expectEqual(memory.use { compile(2000, in: database) }, nil)
  }

  @Test("what is forgotten counts towards no limit any more")
  func forgottenMemory() throws {
    let memory = MemoryBudget()
    let database = try memory.use { () throws(SQLiteError) in try Database(path: ":memory:", access: .create) }
    expect(memory.usedBytes > 0)
    memory.forget()
    expectEqual(memory.usedBytes, 0)
    memory.limit(moreBytes: 10_000_000)
    expectEqual(memory.use { compile(2000, in: database) }, nil)
  }

  @Test func otherConnectionsHaveNoLimits() throws {
    let memory = MemoryBudget()
    let database = try Database(path: ":memory:", access: .create)
    memory.limit(moreBytes: 0)
    expect(memory.use { compile(2000, in: database) } == SQLiteError.outOfMemory)
    expectEqual(compile(2000, in: database), nil)
  }
}
