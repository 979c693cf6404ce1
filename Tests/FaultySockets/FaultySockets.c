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
static _Thread_local struct timespec now;

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!is_on || clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
  *time = now;
  return 0;
}

void faulty_sockets_use(const struct faulty_sockets *wanted) {
  is_on = 0;
  count = 0;
  if (!wanted) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  faults = *wanted;
  is_on = 1;
}

void faulty_sockets_advance(uint64_t nanoseconds) {
  uint64_t rest = (uint64_t)now.tv_nsec + nanoseconds;
  now.tv_sec += (time_t)(rest / 1000000000);
  now.tv_nsec = (long)(rest % 1000000000);
}

long faulty_sockets_count(void) { return count; }

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

ssize_t recv(int socket, void *bytes, size_t length, int flags) {
  if (is_on) {
    if (fails()) return -1;
    length = shortened(length);
  }
  return recvfrom(socket, bytes, length, flags, 0, 0);
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

int epoll_wait(int queue, struct epoll_event *events, int capacity, int milliseconds) {
  if (is_on && happens(faults.interruptions)) {
    errno = EINTR;
    return -1;
  }
  if (is_on && capacity > 1 && happens(faults.short_transfers)) capacity = 1;
  if (is_on) milliseconds = 0;
  return epoll_pwait(queue, events, capacity, milliseconds, 0);
}
