#define _GNU_SOURCE
#include "FaultySockets.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct faulty_sockets faults;
static _Thread_local int is_on;
static _Thread_local long count;
/// The clocks, in nanoseconds, and how long the machine was suspended.
static _Thread_local uint64_t monotonic, realtime, suspended;
/// The credentials of the peers that were not asked for yet, a ring.
static _Thread_local struct ucred peers[64];
static _Thread_local unsigned first_peer, end_of_peers;
static _Thread_local int would_block;
static _Thread_local long received;
static _Thread_local int refused;

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!is_on || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME)) {
    return (int)syscall(SYS_clock_gettime, clock, time);
  }
  uint64_t now = clock == CLOCK_REALTIME ? realtime : clock == CLOCK_BOOTTIME ? monotonic + suspended : monotonic;
  time->tv_sec = (time_t)(now / 1000000000);
  time->tv_nsec = (long)(now % 1000000000);
  return 0;
}

static uint64_t present(clockid_t clock) {
  struct timespec time;
  syscall(SYS_clock_gettime, clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void faulty_sockets_use(const struct faulty_sockets *wanted) {
  is_on = wanted != 0;
  count = 0;
  received = 0;
  would_block = 0;
  first_peer = end_of_peers = 0;
  monotonic = present(CLOCK_MONOTONIC);
  realtime = present(CLOCK_REALTIME);
  suspended = present(CLOCK_BOOTTIME) - monotonic;
  if (wanted) faults = *wanted;
}

void faulty_sockets_change(const struct faulty_sockets *wanted) { faults = *wanted; }

void faulty_sockets_set_clock(uint64_t nanoseconds) { monotonic = realtime = nanoseconds; }

void faulty_sockets_advance(uint64_t nanoseconds) {
  monotonic += nanoseconds;
  realtime += nanoseconds;
}

void faulty_sockets_suspend(uint64_t nanoseconds) {
  suspended += nanoseconds;
  realtime += nanoseconds;
}

long faulty_sockets_count(void) { return count; }

void faulty_sockets_add_peer(uint32_t uid, uint32_t gid, int32_t pid) {
  peers[end_of_peers++ % 64] = (struct ucred){.pid = pid, .uid = uid, .gid = gid};
}

int faulty_sockets_would_block(void) { return would_block; }

long faulty_sockets_take_received(void) {
  long taken = received;
  received = 0;
  return taken;
}

static uint64_t next_random(void) {
  uint64_t mixed = faults.seed += 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return mixed ^ (mixed >> 31);
}

static int happens(int rate) {
  if ((int)(next_random() % 100) >= rate) return 0;
  count++;
  return 1;
}

/// Whether a transfer fails; sets errno.
static int fails(void) {
  if (happens(faults.interruptions)) errno = EINTR;
  else if (happens(faults.delays)) errno = EAGAIN;
  else if (happens(faults.resets)) errno = ECONNRESET;
  else return 0;
  return 1;
}

/// A number of bytes to transfer, at most `length`.
static size_t shortened(size_t length) {
  if (length < 2 || !happens(faults.short_transfers)) return length;
  size_t most = length < 64 || next_random() % 2 ? length : 16;
  return 1 + next_random() % (most - 1);
}

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
  int socket = (int)syscall(SYS_accept4, listener, address, length, flags);
  // The system takes the least that it allows, a few kilobytes.
  int least = 1;
  if (is_on && socket >= 0 && first_peer != end_of_peers) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  }
  return socket;
}

// Other threads of the tests start processes, which have copies of all descriptors until they execute their program. The
// connection ends in spite of them.
int close(int descriptor) {
  if (is_on) shutdown(descriptor, SHUT_RDWR);
  return (int)syscall(SYS_close, descriptor);
}

int getsockopt(int socket, int level, int option, void *value, socklen_t *length) {
  int is_asked = is_on && level == SOL_SOCKET && first_peer != end_of_peers;
  if (is_asked && option == SO_PEERCRED && *length >= sizeof(struct ucred)) {
    *(struct ucred *)value = peers[first_peer++ % 64];
    return 0;
  }
  return (int)syscall(SYS_getsockopt, socket, level, option, value, length);
}

ssize_t recv(int socket, void *bytes, size_t length, int flags) {
  if (is_on) {
    if (fails()) return -1;
    length = shortened(length);
  }
  ssize_t count = recvfrom(socket, bytes, length, flags, 0, 0);
  if (count > 0) received += count;
  return count;
}

ssize_t send(int socket, const void *bytes, size_t length, int flags) {
  if (is_on) {
    if (fails()) return -1;
    length = shortened(length);
  }
  return sendto(socket, bytes, length, flags, 0, 0);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  if (!is_on || message->msg_controllen > 0) return syscall(SYS_sendmsg, socket, message, flags);
  if (fails()) return -1;
  if (message->msg_iovlen == 0 || !happens(faults.short_transfers)) return syscall(SYS_sendmsg, socket, message, flags);
  // Some of the slices, the last of them in part.
  struct msghdr part = *message;
  part.msg_iovlen = 1 + next_random() % message->msg_iovlen;
  struct iovec *last = &part.msg_iov[part.msg_iovlen - 1], whole = *last;
  last->iov_len = shortened(last->iov_len);
  ssize_t sent = syscall(SYS_sendmsg, socket, &part, flags);
  int error = errno;
  *last = whole;
  errno = error;
  return sent;
}

void faulty_sockets_refuse(int registrations) { refused = registrations; }

int epoll_ctl(int queue, int operation, int descriptor, struct epoll_event *event) {
  if (refused > 0 && operation != EPOLL_CTL_DEL) {
    refused--;
    errno = ENOSPC;
    return -1;
  }
  return (int)syscall(SYS_epoll_ctl, queue, operation, descriptor, event);
}

int epoll_wait(int queue, struct epoll_event *events, int capacity, int milliseconds) {
  if (is_on && happens(faults.interruptions)) {
    would_block = 0;
    errno = EINTR;
    return -1;
  }
  if (!is_on) return epoll_pwait(queue, events, capacity, milliseconds, 0);
  if (capacity > 1 && happens(faults.short_transfers)) capacity = 1;
  int ready = epoll_pwait(queue, events, capacity, 0, 0);
  would_block = ready == 0 && milliseconds != 0;
  return ready;
}
