#include "SimulatedDisk.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "FaultyDisk.h"

enum { SECTOR = 512 };

/// One change of a file that was not durable when it was made. `truncates` changes have no bytes.
typedef struct change {
  struct change *next;
  sqlite3_int64 offset;
  sqlite3_int64 size_before;
  int count;
  int old_count;
  /// A sync succeeded since.
  int is_durable;
  /// A sync failed since: the system may have dropped the change, and later syncs do not save it.
  int is_poisoned;
  int truncates;
  /// The new bytes, then the old ones.
  unsigned char bytes[];
} change_t;

/// A file with its changes, the newest first.
typedef struct tracked {
  struct tracked *next;
  /// Open connections.
  int users;
  change_t *changes;
  char path[];
} tracked_t;

typedef struct {
  sqlite3_file base;
  tracked_t *tracked;
  sqlite3_file *real;
} file_t;

static sqlite3_vfs layer;
static sqlite3_vfs *real_layer;
/// Guards the registration.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/// Each thread has a disk of its own: a history with its log runs on one thread.
static _Thread_local tracked_t *all;
static _Thread_local int fault_kind, fault_after, fault_count, failures, is_broken, ignores_syncs;

static sqlite3_file *real_of(sqlite3_file *file) { return ((file_t *)file)->real; }

static void drop_changes(change_t *change) {
  while (change) {
    change_t *next = change->next;
    free(change);
    change = next;
  }
}

void simulated_disk_reset(void) {
  for (tracked_t **place = &all; *place;) {
    tracked_t *file = *place;
    drop_changes(file->changes);
    file->changes = 0;
    if (file->users) {
      place = &file->next;
    } else {
      *place = file->next;
      free(file);
    }
  }
  fault_kind = FAULTY_DISK_NOTHING;
  ignores_syncs = 0;
}

void simulated_disk_fail(int kind, int after, int count) {
  fault_kind = kind;
  fault_after = after;
  fault_count = count;
  failures = is_broken = 0;
}

int simulated_disk_failures(void) {
  return failures;
}

void simulated_disk_ignore_syncs(int on) {
  ignores_syncs = on;
}

static int fails(void) {
  if (fault_after-- > 0) return 0;
  if (fault_count-- <= 0) return 0;
  failures++;
  return 1;
}

int simulated_disk_write(void) {
  if (fault_kind == FAULTY_DISK_SYNC_AND_WRITE && is_broken && fails()) return FAULTY_CALL_IS_FULL;
  return fault_kind == FAULTY_DISK_WRITE && fails() ? FAULTY_CALL_FAILS : FAULTY_CALL_WORKS;
}

int simulated_disk_sync(void) {
  if ((fault_kind != FAULTY_DISK_SYNC && fault_kind != FAULTY_DISK_SYNC_AND_WRITE) || !fails()) return FAULTY_CALL_WORKS;
  is_broken = 1;
  return FAULTY_CALL_FAILS;
}

int simulated_disk_allocate(void) {
  return fault_kind == FAULTY_DISK_FULL && fails() ? FAULTY_CALL_IS_FULL : FAULTY_CALL_WORKS;
}

int simulated_disk_ignores_syncs(void) { return ignores_syncs; }

static tracked_t *track(const char *path) {
  for (tracked_t *file = all; file; file = file->next)
    if (!strcmp(file->path, path)) return file;
  tracked_t *file = calloc(1, sizeof(tracked_t) + strlen(path) + 1);
  if (!file) abort();
  strcpy(file->path, path);
  file->next = all;
  all = file;
  return file;
}

/// Notes a change before it is made.
static void note(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset, int truncates) {
  tracked_t *tracked = ((file_t *)file)->tracked;
  if (!tracked) return;
  sqlite3_file *real = real_of(file);
  sqlite3_int64 size = 0;
  real->pMethods->xFileSize(real, &size);
  sqlite3_int64 old = size - offset;
  if (old < 0) old = 0;
  if (!truncates && old > count) old = count;
  change_t *change = malloc(sizeof(change_t) + (size_t)count + (size_t)old);
  if (!change) abort();
  *change = (change_t){tracked->changes, offset, size, count, (int)old, 0, 0, truncates};
  if (count) memcpy(change->bytes, bytes, (size_t)count);
  if (old) real->pMethods->xRead(real, change->bytes + count, (int)old, offset);
  tracked->changes = change;
}

/// Makes the changes of a file durable, but for those that a failed sync lost.
static void make_durable(tracked_t *tracked) {
  change_t **keep = &tracked->changes, *oldest = 0;
  for (change_t *change = tracked->changes; change; change = change->next) {
    if (change->is_poisoned) oldest = change;
    else change->is_durable = 1;
  }
  // What is older than all lost changes is settled.
  if (oldest) keep = &oldest->next;
  drop_changes(*keep);
  *keep = 0;
}

static int simulated_close(sqlite3_file *file) {
  tracked_t *tracked = ((file_t *)file)->tracked;
  if (tracked) tracked->users--;
  return real_of(file)->pMethods ? real_of(file)->pMethods->xClose(real_of(file)) : SQLITE_OK;
}

static int simulated_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  return fault_kind == FAULTY_DISK_READ && fails() ? SQLITE_IOERR_READ : real_of(file)->pMethods->xRead(real_of(file), bytes, count, offset);
}

static int simulated_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  int result = SQLITE_OK;
  if (fault_kind == FAULTY_DISK_FULL && fails()) {
    result = SQLITE_FULL;
  } else if (fault_kind == FAULTY_DISK_SYNC_AND_WRITE && is_broken && fails()) {
    result = SQLITE_FULL;
  } else {
    if (fault_kind == FAULTY_DISK_WRITE && fails()) {
      count /= 2;
      result = SQLITE_IOERR_WRITE;
    }
    note(file, bytes, count, offset, 0);
    int written = real_of(file)->pMethods->xWrite(real_of(file), bytes, count, offset);
    if (result == SQLITE_OK) result = written;
  }
  return result;
}

static int simulated_truncate(sqlite3_file *file, sqlite3_int64 size) {
  note(file, 0, 0, size, 1);
  int result = real_of(file)->pMethods->xTruncate(real_of(file), size);
  return result;
}

static int simulated_sync(sqlite3_file *file, int flags) {
  (void)flags;
  tracked_t *tracked = ((file_t *)file)->tracked;
  int failed = (fault_kind == FAULTY_DISK_SYNC || fault_kind == FAULTY_DISK_SYNC_AND_WRITE) && fails();
  if (failed) {
    is_broken = 1;
    if (tracked)
      for (change_t *change = tracked->changes; change; change = change->next)
        if (!change->is_durable) change->is_poisoned = 1;
  } else if (tracked && !ignores_syncs) {
    make_durable(tracked);
  }
  return failed ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int simulated_size(sqlite3_file *file, sqlite3_int64 *size) {
  return real_of(file)->pMethods->xFileSize(real_of(file), size);
}
static int simulated_lock(sqlite3_file *file, int level) { return real_of(file)->pMethods->xLock(real_of(file), level); }
static int simulated_unlock(sqlite3_file *file, int level) {
  return real_of(file)->pMethods->xUnlock(real_of(file), level);
}
static int simulated_check_lock(sqlite3_file *file, int *result) {
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}
static int simulated_control(sqlite3_file *file, int code, void *argument) {
  return real_of(file)->pMethods->xFileControl(real_of(file), code, argument);
}
static int simulated_sector_size(sqlite3_file *file) { return real_of(file)->pMethods->xSectorSize(real_of(file)); }
static int simulated_traits(sqlite3_file *file) {
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}
static int simulated_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
  return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}
static int simulated_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}
static void simulated_shm_barrier(sqlite3_file *file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }
static int simulated_shm_unmap(sqlite3_file *file, int remove) {
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    2, simulated_close, simulated_read, simulated_write, simulated_truncate, simulated_sync, simulated_size,
    simulated_lock, simulated_unlock, simulated_check_lock, simulated_control, simulated_sector_size, simulated_traits,
    simulated_shm_map, simulated_shm_lock, simulated_shm_barrier, simulated_shm_unmap, 0, 0};

static int simulated_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
  (void)vfs;
  file_t *opened = (file_t *)file;
  opened->real = (sqlite3_file *)(opened + 1);
  memset(opened->real, 0, (size_t)real_layer->szOsFile);
  int result = real_layer->xOpen(real_layer, name, opened->real, flags, out);
  opened->base.pMethods = opened->real->pMethods ? &methods : 0;
  opened->tracked = name && opened->real->pMethods ? track(name) : 0;
  if (opened->tracked) opened->tracked->users++;
  return result;
}

/// A deleted file stays deleted.
static int simulated_delete(sqlite3_vfs *vfs, const char *name, int sync) {
  (void)vfs;
  tracked_t *tracked = track(name);
  drop_changes(tracked->changes);
  tracked->changes = 0;
  return real_layer->xDelete(real_layer, name, sync);
}

void simulated_disk_forget(const char *path) {
  tracked_t *tracked = track(path);
  drop_changes(tracked->changes);
  tracked->changes = 0;
}

int simulated_disk_rename(const char *from, const char *to) {
  if (rename(from, to)) return -1;
  simulated_disk_forget(to);
  tracked_t *tracked = track(from);
  track(to)->changes = tracked->changes;
  tracked->changes = 0;
  return 0;
}

static int register_layer(void) {
  // Filling a layer that is registered would cut the list of layers behind it.
  if (sqlite3_vfs_find("simulated")) return SQLITE_OK;
  real_layer = sqlite3_vfs_find("unix");
  if (!real_layer) return SQLITE_ERROR;
  layer = *real_layer;
  layer.zName = "simulated";
  layer.pNext = 0;
  layer.szOsFile = (int)sizeof(file_t) + real_layer->szOsFile;
  layer.xOpen = simulated_open;
  layer.xDelete = simulated_delete;
  return sqlite3_vfs_register(&layer, 0);
}

int simulated_disk_register(void) {
  pthread_mutex_lock(&lock);
  int result = register_layer();
  pthread_mutex_unlock(&lock);
  return result;
}

static uint64_t next_random(uint64_t *state) {
  uint64_t mixed = *state += 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return mixed ^ (mixed >> 31);
}

/// Makes a change again, or a part of it. Returns whether all of it was made; -1 on an error.
static int redo(int file, const change_t *change, uint64_t *random) {
  uint64_t choice = change->is_durable ? 0 : next_random(random) % 4;
  if (choice == 1) return 0;
  if (change->truncates) return ftruncate(file, change->offset) ? -1 : 1;
  int is_whole = 1;
  for (int start = 0; start < change->count;) {
    // Sectors end at multiples of their size in the file.
    int end = start + SECTOR - (int)((change->offset + start) % SECTOR);
    if (end > change->count) end = change->count;
    if (choice == 2 && next_random(random) % 2) is_whole = 0;
    else if (pwrite(file, change->bytes + start, (size_t)(end - start), change->offset + start) != end - start) return -1;
    start = end;
  }
  return is_whole;
}

static int lose_power(tracked_t *tracked, uint64_t *random) {
  if (tracked->users) return -1;
  if (!tracked->changes) return 0;
  int file = open(tracked->path, O_RDWR);
  if (file < 0) return -1;
  int lost = 0, failed = 0;
  change_t *oldest = 0, *next;
  for (change_t *change = tracked->changes; change; change = next) {
    const unsigned char *old = change->bytes + change->count;
    if (change->old_count && pwrite(file, old, (size_t)change->old_count, change->offset) != change->old_count) failed = 1;
    if (ftruncate(file, change->size_before)) failed = 1;
    // The list is turned round, to make the changes again in their order.
    next = change->next;
    change->next = oldest;
    oldest = change;
  }
  tracked->changes = 0;
  for (change_t *change = oldest; change; change = change->next) {
    int result = redo(file, change, random);
    if (result < 0) failed = 1;
    lost += !result;
  }
  drop_changes(oldest);
  close(file);
  return failed ? -1 : lost;
}

int simulated_disk_lose_power(uint64_t seed) {
  int lost = 0;
  for (tracked_t *file = all; file; file = file->next) {
    int count = lose_power(file, &seed);
    if (count < 0) {
      lost = -1;
      break;
    }
    lost += count;
  }
  return lost;
}
