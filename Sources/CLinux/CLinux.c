#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int clinux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

// From asm-generic/socket.h; older headers do not have it. Neither x86 nor ARM has a number of its own.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int clinux_refuse_descriptors(int listener) {
  int on = 0;
  return setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof on);
}

int clinux_peer_credentials(int descriptor, struct clinux_credentials *credentials) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  credentials->pid = peer.pid;
  credentials->uid = peer.uid;
  credentials->gid = peer.gid;
  return 0;
}

int clinux_peer_groups(int descriptor, uint32_t *groups, int room) {
  socklen_t size = (socklen_t)room * sizeof *groups;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0 && errno != ERANGE) return -1;
  return (int)(size / sizeof *groups);
}

const char *clinux_error_text(int code) {
  const char *text = strerrordesc_np(code);
  return text != NULL ? text : "unknown error";
}

int clinux_window_size(int descriptor, int *columns, int *rows) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return -1;
  *columns = size.ws_col;
  *rows = size.ws_row;
  return 0;
}

static int change_flag(int descriptor, int get, int set, int flag, int on) {
  int flags = fcntl(descriptor, get);
  if (flags < 0) return -1;
  int wanted = on ? flags | flag : flags & ~flag;
  return wanted == flags ? 0 : fcntl(descriptor, set, wanted);
}

int clinux_set_nonblocking(int descriptor, int on) { return change_flag(descriptor, F_GETFL, F_SETFL, O_NONBLOCK, on); }

int clinux_set_close_on_exec(int descriptor, int on) { return change_flag(descriptor, F_GETFD, F_SETFD, FD_CLOEXEC, on); }

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int clinux_open(const char *path, int flags, unsigned int mode) { return open(path, flags | O_CLOEXEC, mode); }

int clinux_open_at(int directory, const char *name, int flags, unsigned int mode) {
  return openat(directory, name, flags | O_CLOEXEC, mode);
}

int clinux_open_directory(const char *path) { return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); }

int clinux_create_unnamed(const char *directory, unsigned int mode) {
  return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int clinux_rename_new(const char *path, const char *other) {
  return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE);
}

int clinux_is_locked(int descriptor) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -1;
  return lock.l_type != F_UNLCK;
}

int clinux_unread(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return CLINUX_NO_READER;
  int count = 0;
  if (S_ISFIFO(status.st_mode)) return ioctl(descriptor, FIONREAD, &count) == 0 ? count : CLINUX_NO_READER;
  if (!S_ISSOCK(status.st_mode) || ioctl(descriptor, SIOCOUTQ, &count) != 0) return CLINUX_NO_READER;
  // A peer that closes is first marked as such, then its queue is emptied. Looked at in the other order, an empty queue
  // without the mark was emptied by reads.
  struct pollfd request = {.fd = descriptor};
  return poll(&request, 1, 0) == 0 ? count : CLINUX_LOST;
}

int clinux_claim(int descriptor) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  if (fcntl(descriptor, F_SETLK, &lock) == 0) return 0;
  if (errno != EACCES && errno != EAGAIN) return -1;
  if (fcntl(descriptor, F_GETLK, &lock) != 0) return -1;
  // The other process may have ended meanwhile.
  return lock.l_type == F_UNLCK ? clinux_claim(descriptor) : lock.l_pid;
}

int clinux_share_lock(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB); }

int clinux_create_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

int clinux_is_remote(const char *directory) {
  struct statfs system;
  if (statfs(directory, &system) != 0) return -1;
  switch ((unsigned int)system.f_type) {
    case 0x6969:      // NFS_SUPER_MAGIC
    case 0x517b:      // SMB_SUPER_MAGIC
    case 0xff534d42:  // CIFS_SUPER_MAGIC
    case 0xfe534d42:  // SMB2_SUPER_MAGIC
    case 0x01021997:  // V9FS_MAGIC
    case 0x00c36400:  // CEPH_SUPER_MAGIC
    case 0x5346414f:  // AFS_SUPER_MAGIC
      return 1;
    default: return 0;
  }
}

void clinux_name_thread(const char *name) {
  char text[16] = {0};
  strncpy(text, name, sizeof text - 1);
  pthread_setname_np(pthread_self(), text);
}

void clinux_return_large_blocks(int size, int kept) {
  mallopt(M_MMAP_THRESHOLD, size);
  mallopt(M_TRIM_THRESHOLD, kept);
  mallopt(M_MXFAST, 0);
}

void clinux_return_free_pages(void) { malloc_trim(0); }

static uint32_t crc_tables[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void fill_crc_tables(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t word = byte;
    for (int bit = 0; bit < 8; bit++) word = word >> 1 ^ (word & 1 ? 0x82F63B78u : 0);
    crc_tables[0][byte] = word;
  }
  for (int table = 1; table < 8; table++)
    for (int byte = 0; byte < 256; byte++) {
      uint32_t shorter = crc_tables[table - 1][byte];
      crc_tables[table][byte] = shorter >> 8 ^ crc_tables[0][shorter & 0xFF];
    }
}

/// Eight bytes at a time with eight tables ("slicing by 8").
static uint32_t crc32c_by_table(uint32_t state, const unsigned char *bytes, size_t count) {
  pthread_once(&crc_once, fill_crc_tables);
  for (; count >= 8; bytes += 8, count -= 8) {
    uint32_t next = 0;
    for (int place = 0; place < 8; place++) {
      unsigned char byte = bytes[place] ^ (place < 4 ? state >> 8 * place & 0xFF : 0);
      next ^= crc_tables[7 - place][byte];
    }
    state = next;
  }
  for (; count; bytes++, count--) state = state >> 8 ^ crc_tables[0][(state ^ *bytes) & 0xFF];
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(
    uint32_t state, const unsigned char *bytes, size_t count) {
  uint64_t wide = state;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  state = (uint32_t)wide;
  for (; count; bytes++, count--) state = __builtin_ia32_crc32qi(state, *bytes);
  return state;
}
static int has_crc_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t crc32c_by_instruction(uint32_t state, const unsigned char *bytes, size_t count) {
  return crc32c_by_table(state, bytes, count);
}
static int has_crc_instruction(void) { return 0; }
#endif

uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count) {
  uint32_t state = ~crc;
  return ~(has_crc_instruction() ? crc32c_by_instruction(state, bytes, count) : crc32c_by_table(state, bytes, count));
}

uint32_t clinux_crc32c_by_table(uint32_t crc, const void *bytes, size_t count) {
  return ~crc32c_by_table(~crc, bytes, count);
}

long clinux_involuntary_switches(void) {
  struct rusage usage = {0};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}
