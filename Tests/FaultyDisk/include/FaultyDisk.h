/// A system layer for SQLite that fails when a test says so; the files themselves are real.
#ifndef FAULTY_DISK_H
#define FAULTY_DISK_H

#include "SimulatedDisk.h"

/// What fails.
enum {
  FAULTY_DISK_NOTHING = 0,
  /// Writes that would make a file longer or any write: the disk is full.
  FAULTY_DISK_FULL = 1,
  /// Writes: the device is broken. Half of the bytes are written.
  FAULTY_DISK_WRITE = 2,
  /// Syncs only.
  FAULTY_DISK_SYNC = 3,
  /// Reads.
  FAULTY_DISK_READ = 4,
  /// A sync, and from then on all writes.
  FAULTY_DISK_SYNC_AND_WRITE = 5,
  /// Syncs of the directory only.
  FAULTY_DISK_SYNC_DIRECTORY = 6,
};

/// Registers the layer under the name "faulty". Returns an SQLite result code.
int faulty_disk_register(void);

/// From the call after the next `after` of that kind on, `count` calls fail as `kind` says. For all threads.
void faulty_disk_fail(int kind, int after, int count);

/// How many calls have failed since `faulty_disk_fail`.
int faulty_disk_failures(void);

/// Waits until so many calls have failed since `faulty_disk_fail`.
void faulty_disk_wait_for_failures(int count);

/// 1: every sync waits; 0: syncs that wait go on.
void faulty_disk_hold_syncs(int on);

/// Waits until a sync is under way.
void faulty_disk_wait_for_sync(void);

/// What happens to a call on a file that SQLite does not use.
enum {
  FAULTY_CALL_WORKS = 0,
  /// The device is broken; of a write, half of the bytes are written.
  FAULTY_CALL_FAILS = 1,
  /// There is no space.
  FAULTY_CALL_IS_FULL = 2,
};

/// Decides about a write into allocated space, a sync (which waits while syncs are held), a sync of the directory, and the
/// allocation of a file.
int faulty_disk_write(void);
int faulty_disk_sync(void);
int faulty_disk_sync_directory(void);
int faulty_disk_allocate(void);

#endif
