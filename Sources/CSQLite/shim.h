/// The system's SQLite.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>

/// Disables the checkpoint when the last connection closes (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE). Swift cannot call the
/// variadic sqlite3_db_config.
static inline int csqlite_keep_log_when_closing(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
#endif
