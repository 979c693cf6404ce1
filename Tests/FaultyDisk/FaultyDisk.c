#include "FaultyDisk.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

typedef struct {
  sqlite3_file base;
  sqlite3_file *real;
} file_t;

static sqlite3_vfs layer;
static sqlite3_vfs *real_layer;
static atomic_int fault_kind, fault_after, fault_count, failures, broken;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int held, waiting;

static sqlite3_file *real_of(sqlite3_file *file) { return ((file_t *)file)->real; }

void faulty_disk_fail(int kind, int after, int count) {
  atomic_store(&fault_kind, FAULTY_DISK_NOTHING);
  atomic_store(&fault_after, after);
  atomic_store(&fault_count, count);
  atomic_store(&failures, 0);
  atomic_store(&broken, 0);
  atomic_store(&fault_kind, kind);
}

int faulty_disk_failures(void) { return atomic_load(&failures); }

static int fails(void) {
  if (atomic_fetch_sub(&fault_after, 1) > 0) return 0;
  if (atomic_fetch_sub(&fault_count, 1) <= 0) return 0;
  pthread_mutex_lock(&gate);
  atomic_fetch_add(&failures, 1);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&gate);
  return 1;
}

void faulty_disk_wait_for_failures(int count) {
  pthread_mutex_lock(&gate);
  while (atomic_load(&failures) < count) pthread_cond_wait(&changed, &gate);
  pthread_mutex_unlock(&gate);
}

void faulty_disk_hold_syncs(int on) {
  pthread_mutex_lock(&gate);
  held = on;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&gate);
}

void faulty_disk_wait_for_sync(void) {
  pthread_mutex_lock(&gate);
  while (!waiting) pthread_cond_wait(&changed, &gate);
  pthread_mutex_unlock(&gate);
}

static void pass_gate(void) {
  pthread_mutex_lock(&gate);
  waiting++;
  pthread_cond_broadcast(&changed);
  while (held) pthread_cond_wait(&changed, &gate);
  waiting--;
  pthread_mutex_unlock(&gate);
}

int faulty_disk_write(void) {
  int kind = atomic_load(&fault_kind);
  if (kind == FAULTY_DISK_SYNC_AND_WRITE && atomic_load(&broken) && fails()) return FAULTY_CALL_IS_FULL;
  return kind == FAULTY_DISK_WRITE && fails() ? FAULTY_CALL_FAILS : FAULTY_CALL_WORKS;
}

int faulty_disk_sync(void) {
  pass_gate();
  int kind = atomic_load(&fault_kind);
  if ((kind != FAULTY_DISK_SYNC && kind != FAULTY_DISK_SYNC_AND_WRITE) || !fails()) return FAULTY_CALL_WORKS;
  if (kind == FAULTY_DISK_SYNC_AND_WRITE) atomic_store(&broken, 1);
  return FAULTY_CALL_FAILS;
}

int faulty_disk_sync_directory(void) {
  return atomic_load(&fault_kind) == FAULTY_DISK_SYNC_DIRECTORY && fails() ? FAULTY_CALL_FAILS : FAULTY_CALL_WORKS;
}

int faulty_disk_allocate(void) {
  return atomic_load(&fault_kind) == FAULTY_DISK_FULL && fails() ? FAULTY_CALL_IS_FULL : FAULTY_CALL_WORKS;
}

static int faulty_close(sqlite3_file *file) {
  return real_of(file)->pMethods ? real_of(file)->pMethods->xClose(real_of(file)) : SQLITE_OK;
}

static int faulty_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  if (atomic_load(&fault_kind) == FAULTY_DISK_READ && fails()) return SQLITE_IOERR_READ;
  return real_of(file)->pMethods->xRead(real_of(file), bytes, count, offset);
}

static int faulty_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  int kind = atomic_load(&fault_kind);
  if (kind == FAULTY_DISK_FULL && fails()) return SQLITE_FULL;
  if (kind == FAULTY_DISK_SYNC_AND_WRITE && atomic_load(&broken) && fails()) return SQLITE_FULL;
  if (kind == FAULTY_DISK_WRITE && fails()) {
    real_of(file)->pMethods->xWrite(real_of(file), bytes, count / 2, offset);
    return SQLITE_IOERR_WRITE;
  }
  return real_of(file)->pMethods->xWrite(real_of(file), bytes, count, offset);
}

static int faulty_sync(sqlite3_file *file, int flags) {
  pass_gate();
  int kind = atomic_load(&fault_kind);
  if (kind == FAULTY_DISK_SYNC && fails()) return SQLITE_IOERR_FSYNC;
  if (kind == FAULTY_DISK_SYNC_AND_WRITE && fails()) {
    atomic_store(&broken, 1);
    return SQLITE_IOERR_FSYNC;
  }
  return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size) {
  return real_of(file)->pMethods->xTruncate(real_of(file), size);
}
static int faulty_size(sqlite3_file *file, sqlite3_int64 *size) {
  return real_of(file)->pMethods->xFileSize(real_of(file), size);
}
static int faulty_lock(sqlite3_file *file, int level) { return real_of(file)->pMethods->xLock(real_of(file), level); }
static int faulty_unlock(sqlite3_file *file, int level) {
  return real_of(file)->pMethods->xUnlock(real_of(file), level);
}
static int faulty_check_lock(sqlite3_file *file, int *result) {
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}
static int faulty_control(sqlite3_file *file, int code, void *argument) {
  return real_of(file)->pMethods->xFileControl(real_of(file), code, argument);
}
static int faulty_sector_size(sqlite3_file *file) { return real_of(file)->pMethods->xSectorSize(real_of(file)); }
static int faulty_traits(sqlite3_file *file) { return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file)); }
static int faulty_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
  return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}
static int faulty_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}
static void faulty_shm_barrier(sqlite3_file *file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }
static int faulty_shm_unmap(sqlite3_file *file, int remove) {
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    2,           faulty_close,   faulty_read,        faulty_write,  faulty_truncate, faulty_sync,     faulty_size,
    faulty_lock, faulty_unlock,  faulty_check_lock,  faulty_control, faulty_sector_size, faulty_traits, faulty_shm_map,
    faulty_shm_lock, faulty_shm_barrier, faulty_shm_unmap, 0, 0};

static int faulty_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
  file_t *opened = (file_t *)file;
  opened->real = (sqlite3_file *)(opened + 1);
  memset(opened->real, 0, real_layer->szOsFile);
  int result = real_layer->xOpen(real_layer, name, opened->real, flags, out);
  opened->base.pMethods = opened->real->pMethods ? &methods : 0;
  return result;
}

int faulty_disk_register(void) {
  // Filling a layer that is registered would cut the list of layers behind it.
  if (sqlite3_vfs_find("faulty")) return SQLITE_OK;
  real_layer = sqlite3_vfs_find(0);
  if (!real_layer) return SQLITE_ERROR;
  layer = *real_layer;
  layer.zName = "faulty";
  layer.pNext = 0;
  layer.szOsFile = (int)sizeof(file_t) + real_layer->szOsFile;
  layer.xOpen = faulty_open;
  return sqlite3_vfs_register(&layer, 0);
}
