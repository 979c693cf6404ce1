/// The system's SQLite.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>

/// Leaves the log as it is when the last connection closes. `sqlite3_db_config` takes varying arguments, which Swift cannot pass.
static inline int csqlite_keep_log_when_closing(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
#endif
