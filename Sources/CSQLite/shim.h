/// The system's SQLite.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>

/// Disables the checkpoint when the last connection closes (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE). Swift cannot call the
/// variadic sqlite3_db_config.
static inline int csqlite_keep_log_when_closing(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

/// Protects a connection from the schema of an untrusted file, as SQLite's page "Defense Against The Dark Arts" advises.
static inline void csqlite_distrust_schema(sqlite3 *database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
  sqlite3_exec(database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", 0, 0, 0);
}
#endif
