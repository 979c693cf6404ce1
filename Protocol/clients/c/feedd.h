/* A client of feedd in C11 without dependencies: add feedd.h and feedd.c to a program.
 *
 * A connection never blocks unless a function is said to. An event loop waits for feedd_events() on feedd_fd(), calls
 * feedd_process(), and takes messages with feedd_next() until it returns FEEDD_AGAIN:
 *
 *     feedd *f;
 *     if (feedd_open(&f, NULL, "example") != FEEDD_OK) ...
 *     feedd_watch(f, "inbox", NULL, NULL);
 *     for (;;) {
 *       struct pollfd p = {feedd_fd(f), feedd_events(f), 0};
 *       poll(&p, 1, -1);
 *       if (feedd_process(f) != FEEDD_OK) ...
 *       feedd_message m;
 *       while (feedd_next(f, &m) == FEEDD_OK) ...
 *     }
 *
 * A program without an event loop uses feedd_call() and feedd_wait(), which block. A feedd_follower keeps a copy of one feed,
 * connects again and resumes. Nothing here is thread-safe: use one connection in one thread at a time.
 *
 * Everything that the daemon sends is checked before it is used. The protocol: Protocol/README.md.
 */
#ifndef FEEDD_H
#define FEEDD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FEEDD_VERSION "1.0"

/* The most bytes of one message, of the requests that wait to be written, and of the messages that feedd_call() keeps. */
#define FEEDD_MAX_MESSAGE (256u << 20)
#define FEEDD_MAX_QUEUED (64u << 20)
/* The most levels of arrays and objects in a message: more than any daemon allows for an element and its message. */
#define FEEDD_MAX_DEPTH 10240

typedef enum {
  FEEDD_OK = 0,
  FEEDD_AGAIN,     /* there is nothing to take now */
  FEEDD_REFUSED,   /* the daemon refused the request, which changed nothing */
  FEEDD_INVALID,   /* an argument is not what the function takes; nothing was sent */
  FEEDD_FULL,      /* too much waits to be written or taken */
  FEEDD_TIMEOUT,   /* the time is over */
  FEEDD_CLOSED,    /* the daemon closed the connection, or there is none */
  FEEDD_MALFORMED, /* the daemon sent what violates the protocol; the connection is closed */
  FEEDD_GAP,       /* a message does not follow from the ones before it: watch again without `since` */
  FEEDD_MEMORY     /* no memory is left; the connection is closed */
} feedd_status;

/* Returns a text for people, such as "refused". */
const char *feedd_status_text(feedd_status status);

/* --- JSON --- */

typedef enum {
  FEEDD_ABSENT = 0, /* there is no such value */
  FEEDD_NULL,
  FEEDD_FALSE,
  FEEDD_TRUE,
  FEEDD_NUMBER,
  FEEDD_STRING,
  FEEDD_ARRAY,
  FEEDD_OBJECT
} feedd_kind;

/* A value inside a checked JSON text: a view, which lives as long as the text. Not ended by a zero byte. */
typedef struct {
  const char *text;
  size_t size;
} feedd_value;

/* Returns whether the bytes are one JSON value in strict UTF-8 with at most FEEDD_MAX_DEPTH levels, and sets `value` to it. */
bool feedd_json(const char *text, size_t size, feedd_value *value);
feedd_kind feedd_kind_of(feedd_value value);
/* Returns the last member of that name of an object; an absent value if there is none, or the value is not an object. */
feedd_value feedd_member(feedd_value object, const char *name);
/* Iterates over an array: starts with `*at` = 0, and returns false after the last item. O(1) a step besides the item's length. */
bool feedd_item(feedd_value array, size_t *at, feedd_value *item);
/* Iterates over the members of an object in the same way. `name` is the text of a JSON string. */
bool feedd_entry(feedd_value object, size_t *at, feedd_value *name, feedd_value *value);
/* Returns whether the value is an integer without a fraction or an exponent, within 64 bits. */
bool feedd_integer(feedd_value value, int64_t *result);
double feedd_double(feedd_value value, double otherwise);
/* Decodes a string into `buffer`, ends it with a zero byte, and returns its length, which may exceed `capacity`: then the text is
 * cut. Returns (size_t)-1 if the value is not a string. A lone surrogate becomes three bytes, as in WTF-8. */
size_t feedd_string(feedd_value value, char *buffer, size_t capacity);
/* Returns whether a string, decoded, equals `text`. */
bool feedd_equals(feedd_value value, const char *text);

/* A text that grows: the JSON of a request. Begin with {0}; `failed` is set when no memory is left. */
typedef struct {
  char *text;
  size_t size, capacity;
  bool failed;
} feedd_text;

void feedd_add(feedd_text *text, const char *json);
void feedd_add_bytes(feedd_text *text, const char *json, size_t size);
/* Adds a string with quotes and escapes. Returns false if it is not UTF-8 (WTF-8 is taken). */
bool feedd_add_string(feedd_text *text, const char *string);
void feedd_add_integer(feedd_text *text, int64_t value);
void feedd_text_free(feedd_text *text);

/* --- A connection --- */

typedef struct feedd feedd;

/* Connects, and sends `hello`, whose answer feedd_next() does not return. `path` may be NULL: $FEEDD_SOCKET,
 * $XDG_RUNTIME_DIR/feedd.sock if a daemon was ever there, or /run/feedd/feedd.sock. On failure, `*f` is NULL and errno is set. */
feedd_status feedd_open(feedd **f, const char *path, const char *client);
/* Closes the connection and frees it. NULL is allowed. */
void feedd_close(feedd *f);

/* Returns the descriptor to wait on; -1 when the connection is closed. */
int feedd_fd(const feedd *f);
/* Returns what to wait for: POLLIN unless much waits to be taken, POLLOUT if something waits to be written. */
short feedd_events(const feedd *f);
/* Reads and writes what is possible without blocking. */
feedd_status feedd_process(feedd *f);
/* Returns why the last function failed, for people: one line, valid until the next call. */
const char *feedd_reason(const feedd *f);

typedef enum {
  FEEDD_ANSWER,   /* `id`, `body`: the result */
  FEEDD_ERROR,    /* `id`, `body`: the error with code, message and data */
  FEEDD_SNAPSHOT, /* `feed`, `body`: the params */
  FEEDD_DELTA,
  FEEDD_BOOKMARK,
  FEEDD_SELECTION,
  FEEDD_BYE, /* `body`: the params; the connection ends */
  FEEDD_OTHER
} feedd_message_kind;

/* A message: views that live until the next call with the same connection. */
typedef struct {
  feedd_message_kind kind;
  int64_t id;       /* of the request; 0 for notifications, and for errors that answer no request */
  feedd_value feed; /* the name, as JSON; absent if there is none */
  feedd_value body;
  feedd_value whole; /* the whole message */
} feedd_message;

/* Takes the next message. FEEDD_AGAIN if none is complete, FEEDD_CLOSED after the last one. */
feedd_status feedd_next(feedd *f, feedd_message *message);

/* Adds a request to what waits to be written, and sets `*id` unless it is NULL. `params` is the text of a JSON object, or NULL.
 * FEEDD_INVALID if it is not, FEEDD_FULL if too much waits already. */
feedd_status feedd_send(feedd *f, const char *method, const char *params, int64_t *id);
/* Sends `watch`. `options` is NULL or the text of further members, such as "\"throttle\":100". */
feedd_status feedd_watch(feedd *f, const char *feed, const char *options, int64_t *id);
/* Sends an `update` of one element, which is JSON. */
feedd_status feedd_push(feedd *f, const char *feed, const char *element, int64_t *id);

/* Blocks until feedd_next() has something to return, at most `timeout` milliseconds; -1 for ever. */
feedd_status feedd_wait(feedd *f, int timeout);
/* Sends a request and blocks until it is answered. Messages that arrive meanwhile are kept for feedd_next(). `*result` is valid
 * until the next call; for FEEDD_REFUSED it is the error. */
feedd_status feedd_call(feedd *f, const char *method, const char *params, int timeout, feedd_value *result);

/* --- A copy of a feed --- */

typedef struct feedd_mirror feedd_mirror;

feedd_mirror *feedd_mirror_new(void);
void feedd_mirror_free(feedd_mirror *mirror);
/* Begins with the result of `watch`, or continues with one that was resumed. */
feedd_status feedd_mirror_start(feedd_mirror *mirror, feedd_value result);
/* Applies a notification. Sets `*changed`, unless it is NULL, to whether the copy is complete and the message changed it. */
feedd_status feedd_mirror_apply(feedd_mirror *mirror, const feedd_message *message, bool *changed);

bool feedd_mirror_is_whole(const feedd_mirror *mirror);
int64_t feedd_mirror_revision(const feedd_mirror *mirror);
/* Returns the `since` of another `watch`, as JSON, valid until the mirror changes; NULL before the copy was complete. */
const char *feedd_mirror_since(feedd_mirror *mirror);
size_t feedd_mirror_sections(const feedd_mirror *mirror);
/* The name of a section, and its `key` (absent unless it is a section by value), as JSON. */
feedd_value feedd_mirror_name(const feedd_mirror *mirror, size_t section);
feedd_value feedd_mirror_key(const feedd_mirror *mirror, size_t section);
size_t feedd_mirror_rows(const feedd_mirror *mirror, size_t section);
/* The element of a row, and its type (a string or null; absent if rows have no types), as JSON. */
feedd_value feedd_mirror_element(const feedd_mirror *mirror, size_t section, size_t row);
feedd_value feedd_mirror_type(const feedd_mirror *mirror, size_t section, size_t row);
/* Returns the digest that `verify` returns at this revision. O(bytes). */
uint32_t feedd_mirror_digest(const feedd_mirror *mirror);

/* --- A copy that outlives connections --- */

typedef struct feedd_follower feedd_follower;

typedef struct {
  const feedd_mirror *mirror;
  feedd_message_kind kind; /* FEEDD_SNAPSHOT when the copy was made anew, FEEDD_DELTA for a change */
  feedd_value delta;       /* the params of the change; `"ended":true` if the feed was removed. Absent when the copy was made anew:
                            * if the feed was removed, the next step is FEEDD_CLOSED in either case */
} feedd_update;

/* Follows a feed. `options` are further members of `watch`, or NULL. NULL if no memory is left. With `since`, or with `initial` or
 * `elements` false, there is no copy: the first step is FEEDD_INVALID. */
feedd_follower *feedd_follow(const char *path, const char *client, const char *feed, const char *options);
void feedd_follower_free(feedd_follower *follower);
/* The descriptor and events to wait for, and the longest time to wait in milliseconds (-1: for ever). The descriptor is -1 while
 * there is no connection. */
int feedd_follower_fd(const feedd_follower *follower);
short feedd_follower_events(const feedd_follower *follower);
int feedd_follower_timeout(const feedd_follower *follower);
/* Does what is possible without blocking, and takes the next step of the copy. FEEDD_AGAIN if there is none yet. A lost connection
 * is not an error: it is made again after 50 ms to 5 s, as when a member of a group has not reached the copy yet. FEEDD_REFUSED and
 * FEEDD_MALFORMED are final, and so is FEEDD_CLOSED: the feed was removed, or this user may not open the socket. */
feedd_status feedd_follower_next(feedd_follower *follower, feedd_update *update);
/* The same, and blocks at most `timeout` milliseconds; -1 for ever. */
feedd_status feedd_follower_wait(feedd_follower *follower, int timeout, feedd_update *update);
const char *feedd_follower_reason(const feedd_follower *follower);

#ifdef __cplusplus
}
#endif
#endif
