// What Swift cannot import from the system's headers: variadic calls, macros and declarations behind _GNU_SOURCE.
// _GNU_SOURCE is defined in CLinux.c alone: here it would make types that the Glibc module has in another form.
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

/// What the kernel says of the process at the other end of a Unix socket, at the time it connected or listened.
struct clinux_credentials {
  int32_t pid;
  uint32_t uid;
  uint32_t gid;
};

/// accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC; the peer's address is not wanted. -1 and errno on failure.
int clinux_accept(int listener);

/// SO_PEERCRED. 0, or -1 and errno.
int clinux_peer_credentials(int descriptor, struct clinux_credentials *credentials);

/// SO_PEERGROUPS: the supplementary groups of the process at the other end, at the time it connected or listened. How many
/// there are, also when there is room for fewer and none is written; -1 and errno on failure.
int clinux_peer_groups(int descriptor, uint32_t *groups, int room);

/// The sentence for an errno value; a constant string, safe on every thread. Never NULL.
const char *clinux_error_text(int code);

/// The size of the terminal behind a descriptor (TIOCGWINSZ). 0, or -1 and errno.
int clinux_window_size(int descriptor, int *columns, int *rows);

/// O_NONBLOCK on or off. 0, or -1 and errno.
int clinux_set_nonblocking(int descriptor, int on);

/// FD_CLOEXEC on or off. 0, or -1 and errno.
int clinux_set_close_on_exec(int descriptor, int on);

/// pipe2 with O_CLOEXEC. 0, or -1 and errno.
int clinux_pipe(int ends[2]);

/// 1 when the descriptor is open in this process, else 0.
int clinux_is_open(int descriptor);

/// Names the calling thread; a name of more than 15 bytes is truncated.
void clinux_name_thread(const char *name);

/// open(2) with O_CLOEXEC added; the variadic mode spelled out. The descriptor, or -1 and errno.
int clinux_open(const char *path, int flags, unsigned int mode);
#endif
