/// Faults of system calls on sockets, for tests.
///
/// The test bundle defines `recv`, `send`, `sendmsg`, `accept4`, `getsockopt`, `close`, `epoll_ctl`, `epoll_wait` and
/// `clock_gettime` itself, so the shipped code calls these. They pass every call on to the system, except on a thread that has switched faults
/// on. There `epoll_wait` never blocks, the clocks stand still, and `close` ends a connection even if another process has a
/// copy of the descriptor, so that the seed alone decides what happens.
#ifndef FAULTY_SOCKETS_H
#define FAULTY_SOCKETS_H

#include <stdint.h>

/// The faults of a thread. Each rate is the number of calls in a hundred that are affected.
struct faulty_sockets {
  /// Decides which calls fail.
  uint64_t seed;
  /// Reads and writes transfer fewer bytes than they could.
  int short_transfers;
  /// The calls fail with EAGAIN.
  int delays;
  /// The calls fail with EINTR.
  int interruptions;
  /// Reads and writes fail with ECONNRESET.
  int resets;
};

/// Switches the faults of the calling thread on, or off with a null pointer. The clocks stand at the present time.
void faulty_sockets_use(const struct faulty_sockets *faults);

/// Replaces the faults of the calling thread, which are on. The clocks and the peers stay.
void faulty_sockets_change(const struct faulty_sockets *faults);

/// Sets the clocks of the calling thread.
void faulty_sockets_set_clock(uint64_t nanoseconds);

/// Advances the clocks of the calling thread.
void faulty_sockets_advance(uint64_t nanoseconds);

/// Advances the clocks of the calling thread as if the machine had been suspended: not the monotonic one.
void faulty_sockets_suspend(uint64_t nanoseconds);

/// The number of calls of the calling thread that were affected since it switched faults on.
long faulty_sockets_count(void);

/// The connection that this thread makes next will have these credentials when it is accepted, and a small buffer for
/// what is sent to it. At most 64 may wait to be accepted.
void faulty_sockets_add_peer(uint32_t uid, uint32_t gid, int32_t pid);

/// The next `registrations` calls of `epoll_ctl` of the calling thread that add or change a descriptor fail with ENOSPC.
void faulty_sockets_refuse(int registrations);

/// Whether the last `epoll_wait` of the calling thread would have blocked.
int faulty_sockets_would_block(void);

/// The bytes that `recv` returned to the calling thread since the last call.
long faulty_sockets_take_received(void);

#endif
