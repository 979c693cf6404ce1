/// A system layer for SQLite that knows what is synced, so that a test can simulate a loss of power. The files are real;
/// syncs only note what they would make durable. Each thread has its own disk: files and faults.
#ifndef SIMULATED_DISK_H
#define SIMULATED_DISK_H

#include <stdint.h>

/// Registers the layer under the name "simulated". Returns an SQLite result code.
int simulated_disk_register(void);

/// Forgets all files and faults.
void simulated_disk_reset(void);

/// From the call after the next `after` of that kind on, `count` calls fail as `kind` (see FaultyDisk.h) says.
void simulated_disk_fail(int kind, int after, int count);

/// 1: syncs succeed and make nothing durable.
void simulated_disk_ignore_syncs(int on);

/// How many calls have failed since `simulated_disk_fail`.
int simulated_disk_failures(void);

/// Decide about calls on files that SQLite does not use, as in FaultyDisk.h.
int simulated_disk_write(void);
int simulated_disk_sync(void);
int simulated_disk_allocate(void);

/// Whether syncs make nothing durable.
int simulated_disk_ignores_syncs(void);

/// Renames a file with what is not durable of it. Returns 0, or -1 on an error.
int simulated_disk_rename(const char *from, const char *to);

/// Forgets a file that was removed.
void simulated_disk_forget(const char *path);

/// Restores the files as a loss of power might leave them: what is synced, and of each later write some sectors or none.
/// The seed decides which. No connection may be open. Returns how many writes were lost in whole or in part, or -1 on an
/// error.
int simulated_disk_lose_power(uint64_t seed);

#endif
