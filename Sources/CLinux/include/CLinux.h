// Wrappers of declarations that Swift cannot import: variadic functions, macros and those that need _GNU_SOURCE.
// Only CLinux.c defines _GNU_SOURCE. Here it would declare types differently from the Glibc module.
#ifndef CLINUX_H
#define CLINUX_H
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

/// The process at the other end of a Unix socket, as recorded when it connected or listened.
struct clinux_credentials {
  int32_t pid;
  uint32_t uid;
  uint32_t gid;
};

/// accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC, without the peer's address. Returns -1 and sets errno on failure.
int clinux_accept(int listener);

/// Lets the kernel refuse descriptors that clients of a listening Unix socket send (SO_PASSRIGHTS): their `sendmsg` fails with
/// EPERM. Concerns connections that are made later. Returns 0, or -1 and sets errno, ENOPROTOOPT before Linux 6.16.
int clinux_refuse_descriptors(int listener);

/// Reads SO_PEERCRED. Returns 0, or -1 and sets errno.
int clinux_peer_credentials(int descriptor, struct clinux_credentials *credentials);

/// Reads SO_PEERGROUPS, the supplementary groups of the peer when it connected or listened. Returns their number; if that
/// exceeds `room`, writes nothing. Returns -1 and sets errno on failure.
int clinux_peer_groups(int descriptor, uint32_t *groups, int room);

/// Returns the description of an errno value, a constant string. Thread-safe. Never NULL.
const char *clinux_error_text(int code);

/// Reads the size of the terminal of a descriptor (TIOCGWINSZ). Returns 0, or -1 and sets errno.
int clinux_window_size(int descriptor, int *columns, int *rows);

/// Sets or clears O_NONBLOCK. Returns 0, or -1 and sets errno.
int clinux_set_nonblocking(int descriptor, int on);

/// Sets or clears FD_CLOEXEC. Returns 0, or -1 and sets errno.
int clinux_set_close_on_exec(int descriptor, int on);

/// pipe2 with O_CLOEXEC. Returns 0, or -1 and sets errno.
int clinux_pipe(int ends[2]);

/// Names the calling thread. Truncates the name to 15 bytes.
void clinux_name_thread(const char *name);

/// open(2) with O_CLOEXEC and a mode. Returns the descriptor, or -1 and sets errno.
int clinux_open(const char *path, int flags, unsigned int mode);

/// openat(2) with O_CLOEXEC and a mode. Returns the descriptor, or -1 and sets errno.
int clinux_open_at(int directory, const char *name, int flags, unsigned int mode);

/// Opens a directory to name files in it, not to list it (O_PATH), with O_CLOEXEC. Returns the descriptor, or -1 and sets errno.
int clinux_open_directory(const char *path);

/// Creates a regular file without a name on the file system of a directory and opens it to read and write (O_TMPFILE), with
/// O_CLOEXEC. Returns the descriptor, or -1 and sets errno.
int clinux_create_unnamed(const char *directory, unsigned int mode);

/// Renames a file unless there is a file of the new name (RENAME_NOREPLACE). Returns 0, or -1 and sets errno.
int clinux_rename_new(const char *path, const char *other);

/// Whether any part of the file of a descriptor is locked with fcntl(2), by whichever process (F_OFD_GETLK). Locks nothing.
/// Returns 1 or 0, or -1 and sets errno.
int clinux_is_locked(int descriptor);

/// Returns the number of written bytes that the reader of a pipe has not read yet. For a socket, returns an upper bound of the
/// bytes that its peer has not read (SIOCOUTQ), or CLINUX_LOST after the peer has closed it, because unread bytes are then
/// discarded. Returns CLINUX_NO_READER for anything else.
int clinux_unread(int descriptor);
#define CLINUX_NO_READER (-1)
#define CLINUX_LOST (-2)

/// Locks a file for this process, not for its children (fcntl). Returns 0; the process that has locked it; or -1 and sets errno.
int clinux_claim(int descriptor);

/// Locks a file for all processes that have this open description (flock). Returns 0, or -1 and sets errno, EWOULDBLOCK if others
/// have locked it.
int clinux_share_lock(int descriptor);

/// Creates an empty file in memory, with O_CLOEXEC. Returns the descriptor, or -1 and sets errno.
int clinux_create_memory_file(const char *name);

/// Whether the file system of a directory is that of another machine: NFS, SMB, 9P, Ceph or AFS. Returns 1 or 0, or -1 and sets
/// errno.
int clinux_is_remote(const char *directory);

/// Lets malloc map each block of at least `size` bytes by itself, and return it to the system when it is freed. Other free
/// memory is returned if more than `kept` bytes of it are at the end of the heap.
void clinux_return_large_blocks(int size, int kept);

/// Returns the free pages within the heaps of malloc to the system (malloc_trim).
void clinux_return_free_pages(void);

/// How often another thread took the processor from this one (RUSAGE_THREAD). Does not fail.
long clinux_involuntary_switches(void);

/// Continues a CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected): `crc` is the value of the bytes so far, 0 for none. Uses
/// the instruction of the processor if it has one, which C can name and Swift cannot.
uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same on any processor, for a test.
uint32_t clinux_crc32c_by_table(uint32_t crc, const void *bytes, size_t count);
#endif
