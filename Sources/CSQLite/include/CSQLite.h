/// The system's SQLite, with a budget of memory for each thread.
#ifndef CSQLITE_H
#define CSQLITE_H
#include <sqlite3.h>

/// What SQLite may still allocate while a thread uses the budget. It counts all memory that SQLite allocates and frees on
/// that thread; allocations beyond a limit fail with SQLITE_NOMEM.
struct csqlite_budget {
  /// The bytes that are allocated now.
  sqlite3_int64 used;
  /// The maximum of `used`.
  sqlite3_int64 max;
  /// The number of further allocations.
  sqlite3_int64 allocations;
};

/// Makes SQLite use a budget for the calling thread, until the next call; NULL for no limits. The budget stays the caller's.
void csqlite_use_budget(struct csqlite_budget *budget);

/// Disables the checkpoint when the last connection closes (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE). Swift cannot call the
/// variadic sqlite3_db_config.
void csqlite_keep_log_when_closing(sqlite3 *database);

/// Protects a connection from the schema of an untrusted file, as SQLite's page "Defense Against The Dark Arts" advises.
/// Disables the connection's own pool of small blocks, so that a budget counts each allocation.
void csqlite_distrust_schema(sqlite3 *database);
#endif
