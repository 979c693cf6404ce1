#include "CSQLite.h"

static _Thread_local struct csqlite_budget *current;
/// The allocator that SQLite would use.
static sqlite3_mem_methods plain;

/// Whether the thread may allocate `growth` more bytes.
static int spend(sqlite3_int64 growth) {
  struct csqlite_budget *budget = current;
  if (!budget) return 1;
  if (budget->allocations <= 0 || budget->used + growth > budget->max) return 0;
  budget->allocations--;
  return 1;
}

static void count(sqlite3_int64 growth) {
  if (current) current->used += growth;
}

static void *counted_malloc(int size) {
  if (!spend(size)) return 0;
  void *block = plain.xMalloc(size);
  if (block) count(plain.xSize(block));
  return block;
}

static void counted_free(void *block) {
  if (block) count(-(sqlite3_int64)plain.xSize(block));
  plain.xFree(block);
}

static void *counted_realloc(void *block, int size) {
  sqlite3_int64 before = plain.xSize(block);
  if (!spend(size - before)) return 0;
  void *grown = plain.xRealloc(block, size);
  if (grown) count(plain.xSize(grown) - before);
  return grown;
}

/// Installs the allocator. SQLite accepts it only before its first use, so this runs before `main`.
__attribute__((constructor)) static void install(void) {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK) return;
  sqlite3_mem_methods counted = plain;
  counted.xMalloc = counted_malloc;
  counted.xFree = counted_free;
  counted.xRealloc = counted_realloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &counted);
}

void csqlite_use_budget(struct csqlite_budget *budget) { current = budget; }

void csqlite_keep_log_when_closing(sqlite3 *database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

void csqlite_distrust_schema(sqlite3 *database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_LOOKASIDE, (void *)0, 0, 0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
  sqlite3_exec(database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", 0, 0, 0);
}
