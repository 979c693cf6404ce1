/// Transactions.
extension Database {
  /// Executes `body` as one transaction that writes: all of it happens or nothing.
  public func transaction<E: Error>(_ body: () throws(E) -> Void) throws(TransactionError<E>) {
    do throws(SQLiteError) { try execute("BEGIN IMMEDIATE") } catch { throw .database(error) }
    do throws(E) {
      try body()
    } catch {
      rollBack()
      throw .body(error)
    }
    do throws(SQLiteError) {
      try execute("COMMIT")
    } catch {
      rollBack()
      throw .database(error)
    }
  }

  /// Undoes the transaction under way, if there is one. Some errors have undone it already.
  public func rollBack() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }
}

/// Why a transaction did not happen.
public enum TransactionError<Failure: Error>: Error {
  /// It could not be begun or committed.
  case database(SQLiteError)
  /// What was to be done in it failed.
  case body(Failure)
}
