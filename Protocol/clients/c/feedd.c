/* The client of feedd: see feedd.h. */
#define _GNU_SOURCE
#include "feedd.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* While this much waits to be taken, nothing more is read: the daemon then combines further changes. */
#define HIGH_WATER (4u << 20)
#define READ_SIZE (64u << 10)

const char *feedd_status_text(feedd_status status) {
  static const char *const texts[] = {"ok",        "nothing to take", "refused", "invalid argument",   "too much waits",
                                      "timed out", "closed",          "gap",     "not this protocol", "out of memory"};
  switch (status) {
    case FEEDD_MALFORMED: return texts[8];
    case FEEDD_GAP: return texts[7];
    default: return (unsigned)status <= FEEDD_MEMORY ? texts[status] : "unknown status";
  }
}

/* --- Checking JSON --- */

typedef struct {
  const unsigned char *at, *end;
} cursor;

static void skip_space(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

static bool check_hex(cursor *c) {
  for (int i = 0; i < 4; i++, c->at++) {
    if (c->at == c->end) return false;
    unsigned char x = *c->at;
    if (!((x >= '0' && x <= '9') || (x >= 'a' && x <= 'f') || (x >= 'A' && x <= 'F'))) return false;
  }
  return true;
}

/* Checks the bytes of one character of more than one byte: no overlong form, no surrogate, nothing above U+10FFFF. */
static bool check_wide(cursor *c) {
  unsigned char first = *c->at++;
  unsigned char low = 0x80, high = 0xBF;
  int more;
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return false;
  }
  for (; more > 0; more--) {
    if (c->at == c->end || *c->at < low || *c->at > high) return false;
    c->at++;
    low = 0x80;
    high = 0xBF;
  }
  return true;
}

static bool check_string(cursor *c) {
  c->at++;
  while (c->at < c->end) {
    unsigned char x = *c->at;
    if (x == '"') {
      c->at++;
      return true;
    }
    if (x < 0x20) return false;
    if (x >= 0x80) {
      if (!check_wide(c)) return false;
    } else if (x == '\\') {
      if (++c->at == c->end) return false;
      x = *c->at++;
      if (x == 'u') {
        if (!check_hex(c)) return false;
      } else if (x == 0 || !strchr("\"\\/bfnrt", x)) {
        return false;
      }
    } else {
      c->at++;
    }
  }
  return false;
}

static bool check_digits(cursor *c) {
  const unsigned char *start = c->at;
  while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
  return c->at > start;
}

static bool check_number(cursor *c) {
  if (*c->at == '-') c->at++;
  if (c->at < c->end && *c->at == '0') {
    c->at++;
  } else if (!check_digits(c)) {
    return false;
  }
  if (c->at < c->end && *c->at == '.') {
    c->at++;
    if (!check_digits(c)) return false;
  }
  if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
    c->at++;
    if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
    if (!check_digits(c)) return false;
  }
  return true;
}

static bool check_word(cursor *c, const char *word) {
  size_t size = strlen(word);
  if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) return false;
  c->at += size;
  return true;
}

/* Checks a name and its colon. */
static bool check_name(cursor *c) {
  skip_space(c);
  if (c->at == c->end || *c->at != '"' || !check_string(c)) return false;
  skip_space(c);
  if (c->at == c->end || *c->at != ':') return false;
  c->at++;
  return true;
}

bool feedd_json(const char *text, size_t size, feedd_value *value) {
  /* A bit for each open array or object, so that the depth costs no stack. */
  unsigned char is_object[FEEDD_MAX_DEPTH / 8] = {0};
  size_t depth = 0;
  cursor c = {(const unsigned char *)text, (const unsigned char *)text + size};
  skip_space(&c);
  const unsigned char *start = c.at;
  for (;;) {
    skip_space(&c);
    if (c.at == c.end) return false;
    bool opened = false;
    switch (*c.at) {
      case '{':
      case '[': {
        bool object = *c.at++ == '{';
        if (depth == FEEDD_MAX_DEPTH) return false;
        unsigned char bit = (unsigned char)(1u << (depth % 8));
        is_object[depth / 8] = (unsigned char)(object ? is_object[depth / 8] | bit : is_object[depth / 8] & ~bit);
        depth++;
        skip_space(&c);
        if (c.at < c.end && *c.at == (object ? '}' : ']')) break; /* closed below */
        if (object && !check_name(&c)) return false;
        opened = true;
        break;
      }
      case '"':
        if (!check_string(&c)) return false;
        break;
      case 't':
        if (!check_word(&c, "true")) return false;
        break;
      case 'f':
        if (!check_word(&c, "false")) return false;
        break;
      case 'n':
        if (!check_word(&c, "null")) return false;
        break;
      default:
        if (*c.at != '-' && (*c.at < '0' || *c.at > '9')) return false;
        if (!check_number(&c)) return false;
    }
    if (opened) continue;
    /* A value ended: close what ends with it, or go on with the next one. */
    for (;;) {
      if (depth == 0) {
        const unsigned char *end = c.at;
        skip_space(&c);
        if (c.at != c.end) return false;
        *value = (feedd_value){(const char *)start, (size_t)(end - start)};
        return true;
      }
      skip_space(&c);
      if (c.at == c.end) return false;
      bool object = is_object[(depth - 1) / 8] >> ((depth - 1) % 8) & 1;
      if (*c.at == ',') {
        c.at++;
        if (object && !check_name(&c)) return false;
        break;
      }
      if (*c.at != (object ? '}' : ']')) return false;
      c.at++;
      depth--;
    }
  }
}

/* --- Reading checked JSON --- */

/* Returns the end of the value that starts at `at`. */
static const char *value_end(const char *at, const char *end) {
  if (*at == '"') {
    for (at++; *at != '"'; at++) at += *at == '\\';
    return at + 1;
  }
  if (*at != '{' && *at != '[') {
    while (at < end && !strchr(",]} \n\r\t", *at)) at++;
    return at;
  }
  size_t depth = 0;
  for (;; at++) {
    if (*at == '"') {
      for (at++; *at != '"'; at++) at += *at == '\\';
    } else if (*at == '{' || *at == '[') {
      depth++;
    } else if ((*at == '}' || *at == ']') && --depth == 0) {
      return at + 1;
    }
  }
}

static const char *past_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
  return at;
}

feedd_kind feedd_kind_of(feedd_value value) {
  if (value.size == 0) return FEEDD_ABSENT;
  switch (*value.text) {
    case '{': return FEEDD_OBJECT;
    case '[': return FEEDD_ARRAY;
    case '"': return FEEDD_STRING;
    case 't': return FEEDD_TRUE;
    case 'f': return FEEDD_FALSE;
    case 'n': return FEEDD_NULL;
    default: return FEEDD_NUMBER;
  }
}

/* Moves to the next item or member; returns where it starts, or NULL after the last. */
static const char *next_start(feedd_value container, size_t at) {
  const char *end = container.text + container.size;
  const char *p = past_space(container.text + (at ? at : 1), end);
  if (at && *p == ',') p = past_space(p + 1, end);
  return *p == ']' || *p == '}' ? NULL : p;
}

bool feedd_item(feedd_value array, size_t *at, feedd_value *item) {
  const char *start = feedd_kind_of(array) == FEEDD_ARRAY ? next_start(array, *at) : NULL;
  if (!start) return false;
  const char *end = value_end(start, array.text + array.size);
  *item = (feedd_value){start, (size_t)(end - start)};
  *at = (size_t)(end - array.text);
  return true;
}

bool feedd_entry(feedd_value object, size_t *at, feedd_value *name, feedd_value *value) {
  const char *start = feedd_kind_of(object) == FEEDD_OBJECT ? next_start(object, *at) : NULL;
  if (!start) return false;
  const char *limit = object.text + object.size;
  const char *end = value_end(start, limit);
  *name = (feedd_value){start, (size_t)(end - start)};
  start = past_space(past_space(end, limit) + 1, limit);
  end = value_end(start, limit);
  *value = (feedd_value){start, (size_t)(end - start)};
  *at = (size_t)(end - object.text);
  return true;
}

feedd_value feedd_member(feedd_value object, const char *wanted) {
  feedd_value name, value, found = {NULL, 0};
  for (size_t at = 0; feedd_entry(object, &at, &name, &value);) {
    if (feedd_equals(name, wanted)) found = value;
  }
  return found;
}

bool feedd_integer(feedd_value value, int64_t *result) {
  if (feedd_kind_of(value) != FEEDD_NUMBER) return false;
  bool negative = *value.text == '-';
  int64_t sum = 0;
  for (size_t i = negative; i < value.size; i++) {
    if (value.text[i] < '0' || value.text[i] > '9') return false;
    int digit = value.text[i] - '0';
    if (sum < (INT64_MIN + digit) / 10) return false;
    sum = sum * 10 - digit;
  }
  if (!negative && sum == INT64_MIN) return false;
  *result = negative ? sum : -sum;
  return true;
}

double feedd_double(feedd_value value, double otherwise) {
  if (feedd_kind_of(value) != FEEDD_NUMBER) return otherwise;
  /* strtod wants a zero byte behind the number, which a view does not have. */
  char small[64];
  char *copy = value.size < sizeof small ? small : malloc(value.size + 1);
  if (!copy) return otherwise;
  memcpy(copy, value.text, value.size);
  copy[value.size] = 0;
  /* strtod wants the point of the program's locale, which may be a comma. */
  char *point = strchr(copy, '.'), wanted = *localeconv()->decimal_point;
  if (point) *point = wanted;
  double result = strtod(copy, NULL);
  if (copy != small) free(copy);
  return result;
}

static unsigned hex(const char *at) {
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    char x = at[i];
    result = result << 4 | (unsigned)(x <= '9' ? x - '0' : (x | 32) - 'a' + 10);
  }
  return result;
}

/* Decodes the next character of a string, whose quotes are left out; returns its number of bytes. */
static size_t decode_character(const char **at, const char *end, char bytes[4]) {
  const char *p = *at;
  if (*p != '\\') {
    unsigned char first = (unsigned char)*p;
    size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    memcpy(bytes, p, size);
    *at = p + size;
    return size;
  }
  p++;
  if (*p != 'u') {
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *found = strchr(names, *p);
    *bytes = found ? values[found - names] : *p;
    *at = p + 1;
    return 1;
  }
  unsigned code = hex(p + 1);
  p += 5;
  if (code >= 0xD800 && code < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    unsigned low = hex(p + 2);
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      p += 6;
    }
  }
  *at = p;
  if (code < 0x80) {
    bytes[0] = (char)code;
    return 1;
  }
  size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; i--, code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3F));
  bytes[0] = (char)((0xF0u << (4 - size)) | code);
  return size;
}

size_t feedd_string(feedd_value value, char *buffer, size_t capacity) {
  if (feedd_kind_of(value) != FEEDD_STRING) {
    if (capacity) *buffer = 0;
    return (size_t)-1;
  }
  const char *at = value.text + 1, *end = value.text + value.size - 1;
  size_t total = 0, written = 0;
  while (at < end) {
    char bytes[4];
    size_t size = decode_character(&at, end, bytes);
    if (written == total && total + size < capacity) {
      memcpy(buffer + total, bytes, size);
      written += size;
    }
    total += size;
  }
  if (capacity) buffer[written] = 0;
  return total;
}

bool feedd_equals(feedd_value value, const char *text) {
  if (feedd_kind_of(value) != FEEDD_STRING) return false;
  const char *at = value.text + 1, *end = value.text + value.size - 1;
  while (at < end) {
    char bytes[4];
    size_t size = decode_character(&at, end, bytes);
    for (size_t i = 0; i < size; i++) {
      if (*text == 0 || *text++ != bytes[i]) return false;
    }
  }
  return *text == 0;
}

/* --- Writing JSON --- */

static bool reserve(feedd_text *text, size_t more) {
  if (text->failed || more > SIZE_MAX / 4 - text->size) return !(text->failed = true);
  if (text->capacity - text->size >= more) return true;
  size_t capacity = text->capacity ? text->capacity : 128;
  while (capacity - text->size < more) capacity *= 2;
  char *grown = realloc(text->text, capacity);
  if (!grown) return !(text->failed = true);
  text->text = grown;
  text->capacity = capacity;
  return true;
}

void feedd_add_bytes(feedd_text *text, const char *json, size_t size) {
  if (size == 0 || !reserve(text, size)) return;
  memcpy(text->text + text->size, json, size);
  text->size += size;
}

void feedd_add(feedd_text *text, const char *json) { feedd_add_bytes(text, json, strlen(json)); }

void feedd_add_integer(feedd_text *text, int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  feedd_add(text, digits);
}

bool feedd_add_string(feedd_text *text, const char *string) {
  cursor c = {(const unsigned char *)string, (const unsigned char *)string + strlen(string)};
  size_t before = text->size;
  feedd_add(text, "\"");
  while (c.at < c.end) {
    const unsigned char *start = c.at;
    char escape[8];
    if (*start == 0xED && c.end - start >= 3 && start[1] >= 0xA0 && start[1] <= 0xBF && start[2] >= 0x80 && start[2] <= 0xBF) {
      snprintf(escape, sizeof escape, "\\u%04x", 0xD000u | (start[1] & 0x3Fu) << 6 | (start[2] & 0x3Fu));
      feedd_add(text, escape);
      c.at += 3;
    } else if (*start >= 0x80) {
      if (!check_wide(&c)) {
        text->size = before;
        return false;
      }
      feedd_add_bytes(text, (const char *)start, (size_t)(c.at - start));
    } else if (*start < 0x20 || *start == '"' || *start == '\\') {
      snprintf(escape, sizeof escape, "\\u%04x", *start);
      feedd_add(text, escape);
      c.at++;
    } else {
      while (c.at < c.end && *c.at >= 0x20 && *c.at < 0x80 && *c.at != '"' && *c.at != '\\') c.at++;
      feedd_add_bytes(text, (const char *)start, (size_t)(c.at - start));
    }
  }
  feedd_add(text, "\"");
  return true;
}

void feedd_text_free(feedd_text *text) {
  free(text->text);
  *text = (feedd_text){0};
}

/* --- The connection --- */

/* A message that feedd_call() set aside. */
typedef struct kept {
  struct kept *next;
  int64_t id; /* of the request that it answers, or 0 */
  size_t size;
  char text[];
} kept;

struct feedd {
  int fd;
  feedd_text input, output;
  size_t read, written; /* how far they were taken */
  int64_t last_id, hello_id, answered_id; /* of the last request, of hello until it is answered, of the last answer */
  kept *first, **last, *current;
  size_t kept_bytes;
  bool is_at_end, is_broken; /* whether the daemon ended the stream, and whether it takes nothing any more */
  feedd_status ended;
  char reason[256], bye[200]; /* `bye`: the message of the daemon's bye, or empty */
};

static feedd_status fail(feedd *f, feedd_status status, const char *reason) {
  snprintf(f->reason, sizeof f->reason, "%s", reason);
  return status;
}

/* Ends the connection for good. */
static feedd_status end(feedd *f, feedd_status status, const char *reason) {
  if (f->ended == FEEDD_OK) {
    f->ended = status;
    fail(f, status, reason);
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
  }
  return f->ended;
}

/* Whether a daemon of the user was ever at a socket: by the socket, the mark beside it, or the state directory. */
static int was_there(const char *path) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  char trace[PATH_MAX + sizeof ".own"];
  struct stat status;
  if (stat(path, &status) == 0) return 1;
  snprintf(trace, sizeof trace, "%s.own", path);
  if (stat(trace, &status) == 0) return 1;
  if (state && *state == '/') snprintf(trace, sizeof trace, "%s/feedd", state);
  else if (home && *home) snprintf(trace, sizeof trace, "%s/.local/state/feedd", home);
  else return 0;
  return stat(trace, &status) == 0;
}

static void set_path(const char *path, char *buffer, size_t size) {
  const char *named = path && *path ? path : getenv("FEEDD_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
  if (named && *named) {
    snprintf(buffer, size, "%s", named);
    return;
  }
  if (runtime && *runtime) {
    snprintf(buffer, size, "%s/feedd.sock", runtime);
    if (was_there(buffer)) return;
  }
  snprintf(buffer, size, "/run/feedd/feedd.sock");
}

static feedd_status send_text(feedd *f, const char *method, const char *params, size_t size, int64_t *id) {
  if (f->ended != FEEDD_OK) return f->ended;
  if (f->output.size - f->written > FEEDD_MAX_QUEUED) return fail(f, FEEDD_FULL, "too many requests wait to be written");
  size_t before = f->output.size;
  f->last_id++;
  feedd_add_bytes(&f->output, "\0\0\0\0", 4);
  feedd_add(&f->output, "{\"jsonrpc\":\"2.0\",\"id\":");
  feedd_add_integer(&f->output, f->last_id);
  feedd_add(&f->output, ",\"method\":");
  bool is_text = feedd_add_string(&f->output, method);
  feedd_add(&f->output, ",\"params\":");
  feedd_add_bytes(&f->output, params, size);
  feedd_add(&f->output, "}");
  size_t length = f->output.size - before - 4;
  if (!f->output.failed && (!is_text || length > UINT32_MAX)) {
    f->output.size = before;
    return fail(f, FEEDD_INVALID, is_text ? "a request that is too long" : "a method that is not UTF-8");
  }
  if (f->output.failed) return end(f, FEEDD_MEMORY, "out of memory");
  for (int i = 0; i < 4; i++) f->output.text[before + (size_t)i] = (char)(length >> (24 - 8 * i));
  if (f->is_broken) f->output.size = f->written = 0;
  if (id) *id = f->last_id;
  return FEEDD_OK;
}

feedd_status feedd_open(feedd **result, const char *path, const char *client) {
  *result = NULL;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char name[PATH_MAX];
  set_path(path, name, sizeof name);
  if (strlen(name) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return FEEDD_INVALID;
  }
  memcpy(address.sun_path, name, strlen(name) + 1);
  feedd_text params = {0};
  feedd_add(&params, "{\"protocol\":1,\"client\":");
  if (!feedd_add_string(&params, client ? client : "feedd.c")) {
    feedd_text_free(&params);
    errno = EILSEQ;
    return FEEDD_INVALID;
  }
  feedd_add(&params, "}");
  feedd *f = calloc(1, sizeof *f);
  if (!f || params.failed) {
    feedd_text_free(&params);
    free(f);
    errno = ENOMEM;
    return FEEDD_MEMORY;
  }
  f->last = &f->first;
  f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int failed = f->fd < 0 ? errno : 0;
  /* On a Unix socket, connect succeeds or fails at once. */
  if (!failed && connect(f->fd, (struct sockaddr *)&address, sizeof address) != 0) failed = errno;
  feedd_status status = failed ? FEEDD_CLOSED : send_text(f, "hello", params.text, params.size, &f->hello_id);
  feedd_text_free(&params);
  if (status != FEEDD_OK) {
    feedd_close(f);
    errno = failed ? failed : ENOMEM;
    return status;
  }
  *result = f;
  return FEEDD_OK;
}

void feedd_close(feedd *f) {
  if (!f) return;
  if (f->fd >= 0) close(f->fd);
  feedd_text_free(&f->input);
  feedd_text_free(&f->output);
  free(f->current);
  while (f->first) {
    kept *next = f->first->next;
    free(f->first);
    f->first = next;
  }
  free(f);
}

int feedd_fd(const feedd *f) { return f->fd; }
const char *feedd_reason(const feedd *f) { return f->reason; }

/* Returns whether a whole frame was received; sets its length, also if only that was received, otherwise to 0. */
static bool has_frame(const feedd *f, size_t *length) {
  size_t available = f->input.size - f->read;
  *length = 0;
  if (available < 4) return false;
  const unsigned char *at = (const unsigned char *)f->input.text + f->read;
  *length = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
  return available - 4 >= *length;
}

static bool wants_input(const feedd *f) {
  size_t length;
  return !f->is_at_end && (f->input.size - f->read < HIGH_WATER || !has_frame(f, &length));
}

short feedd_events(const feedd *f) {
  if (f->fd < 0) return 0;
  return (short)((wants_input(f) ? POLLIN : 0) | (f->output.size > f->written ? POLLOUT : 0));
}

static feedd_status write_output(feedd *f) {
  while (f->written < f->output.size) {
    ssize_t n = send(f->fd, f->output.text + f->written, f->output.size - f->written, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      f->written += (size_t)n;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      /* What the daemon sent before it closed the connection, such as its `bye`, can still be read. */
      f->is_broken = true;
      f->written = f->output.size;
    }
  }
  if (f->written == f->output.size) {
    f->written = f->output.size = 0;
  } else if (f->written > f->output.size / 2) {
    memmove(f->output.text, f->output.text + f->written, f->output.size - f->written);
    f->output.size -= f->written;
    f->written = 0;
  }
  return FEEDD_OK;
}

static feedd_status read_input(feedd *f) {
  while (wants_input(f)) {
    /* Half of it was taken, so that each byte moves at most once on average. */
    if (f->read > f->input.size / 2) {
      memmove(f->input.text, f->input.text + f->read, f->input.size - f->read);
      f->input.size -= f->read;
      f->read = 0;
    }
    size_t length;
    if (!has_frame(f, &length) && f->input.size >= 4 && (length == 0 || length > FEEDD_MAX_MESSAGE)) {
      return end(f, FEEDD_MALFORMED, "the daemon does not speak this protocol: a frame of a length that is not allowed");
    }
    /* Memory grows with what arrived, not with what a length promises. */
    if (!reserve(&f->input, READ_SIZE)) return end(f, FEEDD_MEMORY, "out of memory");
    ssize_t n = recv(f->fd, f->input.text + f->input.size, f->input.capacity - f->input.size, MSG_DONTWAIT);
    if (n > 0) {
      f->input.size += (size_t)n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FEEDD_OK;
    f->is_at_end = true;
  }
  return FEEDD_OK;
}

feedd_status feedd_process(feedd *f) {
  if (f->ended != FEEDD_OK) return f->ended;
  feedd_status status = write_output(f);
  return status == FEEDD_OK ? read_input(f) : status;
}

static feedd_status malformed(feedd *f, const char *what) {
  char reason[200];
  snprintf(reason, sizeof reason, "the daemon does not speak this protocol: %s", what);
  return end(f, FEEDD_MALFORMED, reason);
}

/* Says what a message is. FEEDD_AGAIN for one that concerns nobody. */
static feedd_status classify(feedd *f, const char *text, size_t size, feedd_message *m) {
  *m = (feedd_message){.kind = FEEDD_OTHER};
  if (!feedd_json(text, size, &m->whole)) return malformed(f, "a frame that is not JSON, or has too many levels");
  if (feedd_kind_of(m->whole) != FEEDD_OBJECT) return malformed(f, "a message that is not an object");
  feedd_value name, value, method = {0}, params = {0}, error = {0}, result = {0}, id = {0};
  for (size_t at = 0; feedd_entry(m->whole, &at, &name, &value);) {
    if (feedd_equals(name, "method")) method = value;
    if (feedd_equals(name, "params")) params = value;
    if (feedd_equals(name, "error")) error = value;
    if (feedd_equals(name, "result")) result = value;
    if (feedd_equals(name, "id")) id = value;
  }
  if (method.size) {
    if (feedd_kind_of(method) != FEEDD_STRING || (params.size && feedd_kind_of(params) != FEEDD_OBJECT)) {
      return malformed(f, "a notification without a name, or with params that are not an object");
    }
    static const char *const names[] = {"snapshot", "delta", "bookmark", "selection", "bye"};
    for (size_t i = 0; i < 5; i++) {
      if (feedd_equals(method, names[i])) m->kind = (feedd_message_kind)((int)FEEDD_SNAPSHOT + (int)i);
    }
    m->body = params;
    m->feed = feedd_member(params, "feed");
    if (m->kind == FEEDD_BYE) {
      /* Nothing follows, even if the daemon does not close the connection. */
      feedd_string(feedd_member(params, "message"), f->bye, sizeof f->bye);
      f->is_at_end = true;
    }
    return FEEDD_OK;
  }
  int64_t code;
  if (error.size) {
    if (!feedd_integer(feedd_member(error, "code"), &code) ||
        feedd_kind_of(feedd_member(error, "message")) != FEEDD_STRING) {
      return malformed(f, "an error without a code and a message");
    }
  } else if (!result.size) {
    return malformed(f, "an answer without a result");
  }
  m->kind = error.size ? FEEDD_ERROR : FEEDD_ANSWER;
  m->body = error.size ? error : result;
  if (error.size && feedd_kind_of(id) == FEEDD_NULL) return FEEDD_OK;
  if (!feedd_integer(id, &m->id) || m->id < 1 || m->id > f->last_id) return FEEDD_AGAIN;
  if (m->id != f->hello_id) return FEEDD_OK;
  f->hello_id = 0;
  if (error.size) {
    char message[160];
    feedd_string(feedd_member(error, "message"), message, sizeof message);
    return end(f, FEEDD_REFUSED, message);
  }
  int64_t protocol;
  if (feedd_integer(feedd_member(result, "protocol"), &protocol) && protocol != 1) {
    return malformed(f, "another version than 1");
  }
  return FEEDD_AGAIN;
}

/* Notes which request is answered. The daemon cannot name one that it could not read, such as one with too many levels. It answers
 * in order, so it is the one behind the last that was answered. */
static void count_answer(feedd *f, feedd_message *m) {
  if (m->kind == FEEDD_ERROR && m->id == 0 && f->answered_id < f->last_id) m->id = f->answered_id + 1;
  if (m->id > f->answered_id && m->id <= f->last_id) f->answered_id = m->id;
}

/* Takes the next message from the input. */
static feedd_status next_frame(feedd *f, feedd_message *m) {
  for (;;) {
    if (f->ended != FEEDD_OK) return f->ended;
    size_t length;
    bool whole = has_frame(f, &length);
    if (f->input.size - f->read >= 4 && (length == 0 || length > FEEDD_MAX_MESSAGE)) {
      return malformed(f, "a frame of a length that is not allowed");
    }
    if (!whole) {
      if (!f->is_at_end) return FEEDD_AGAIN;
      if (*f->bye) return end(f, FEEDD_CLOSED, f->bye);
      return end(f, FEEDD_CLOSED, f->input.size > f->read ? "the daemon closed the connection within a message"
                                                          : "the daemon closed the connection");
    }
    const char *text = f->input.text + f->read + 4;
    f->read += 4 + length;
    feedd_status status = classify(f, text, length, m);
    if (m->kind == FEEDD_ANSWER || m->kind == FEEDD_ERROR) count_answer(f, m);
    if (status != FEEDD_AGAIN) return status;
  }
}

feedd_status feedd_next(feedd *f, feedd_message *m) {
  free(f->current);
  f->current = f->first;
  if (!f->current) return next_frame(f, m);
  f->first = f->current->next;
  if (!f->first) f->last = &f->first;
  f->kept_bytes -= f->current->size;
  feedd_status status = classify(f, f->current->text, f->current->size, m);
  m->id = f->current->id;
  return status;
}

feedd_status feedd_send(feedd *f, const char *method, const char *params, int64_t *id) {
  feedd_value object;
  if (!params) params = "{}";
  if (!feedd_json(params, strlen(params), &object) || feedd_kind_of(object) != FEEDD_OBJECT) {
    return fail(f, FEEDD_INVALID, "params that are not a JSON object");
  }
  return send_text(f, method, object.text, object.size, id);
}

/* Sends a request whose params are the feed and further members. */
static feedd_status send_for_feed(
    feedd *f, const char *method, const char *feed, const char *member, const char *json, int64_t *id) {
  feedd_text params = {0};
  feedd_add(&params, "{\"feed\":");
  bool is_text = feedd_add_string(&params, feed);
  if (json) {
    feedd_add(&params, ",");
    feedd_add(&params, member);
    feedd_add(&params, json);
  }
  feedd_add_bytes(&params, "}", 2);
  feedd_status status = params.failed ? fail(f, FEEDD_MEMORY, "out of memory")
                        : !is_text    ? fail(f, FEEDD_INVALID, "a name of a feed that is not UTF-8")
                                      : feedd_send(f, method, params.text, id);
  feedd_text_free(&params);
  return status;
}

feedd_status feedd_watch(feedd *f, const char *feed, const char *options, int64_t *id) {
  return send_for_feed(f, "watch", feed, "", options && *options ? options : NULL, id);
}

feedd_status feedd_push(feedd *f, const char *feed, const char *element, int64_t *id) {
  feedd_value value;
  /* Checked alone, so that it cannot end the object and begin other members. */
  if (!feedd_json(element, strlen(element), &value)) return fail(f, FEEDD_INVALID, "an element that is not JSON");
  return send_for_feed(f, "update", feed, "\"element\":", element, id);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Waits for the descriptor; `limit` is a time of now(), or -1. */
static feedd_status wait_once(feedd *f, int64_t limit) {
  int64_t left = limit < 0 ? -1 : limit - now();
  if (limit >= 0 && left < 0) left = 0;
  struct pollfd p = {f->fd, feedd_events(f), 0};
  int n = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
  if (n == 0 && limit >= 0 && now() >= limit) return fail(f, FEEDD_TIMEOUT, "timed out");
  return feedd_process(f);
}

feedd_status feedd_wait(feedd *f, int timeout) {
  int64_t limit = timeout < 0 ? -1 : now() + timeout;
  feedd_status status = feedd_process(f);
  for (;;) {
    size_t length;
    if (f->first || has_frame(f, &length) || f->is_at_end) return FEEDD_OK;
    if (status != FEEDD_OK) return status;
    status = wait_once(f, limit);
  }
}

/* Copies a message for feedd_next(). */
static feedd_status keep(feedd *f, const feedd_message *m) {
  if (f->kept_bytes + m->whole.size > FEEDD_MAX_QUEUED) return malformed(f, "more messages than this client keeps");
  kept *copy = malloc(sizeof *copy + m->whole.size);
  if (!copy) return end(f, FEEDD_MEMORY, "out of memory");
  copy->next = NULL;
  copy->id = m->id;
  copy->size = m->whole.size;
  memcpy(copy->text, m->whole.text, m->whole.size);
  *f->last = copy;
  f->last = &copy->next;
  f->kept_bytes += copy->size;
  return FEEDD_OK;
}

feedd_status feedd_call(feedd *f, const char *method, const char *params, int timeout, feedd_value *result) {
  int64_t limit = timeout < 0 ? -1 : now() + timeout, id;
  if (result) *result = (feedd_value){0};
  feedd_status status = feedd_send(f, method, params, &id);
  if (status == FEEDD_OK) status = feedd_process(f);
  while (status == FEEDD_OK) {
    feedd_message m;
    status = next_frame(f, &m);
    if (status == FEEDD_AGAIN) {
      status = wait_once(f, limit);
    } else if (status == FEEDD_OK && m.id == id && (m.kind == FEEDD_ANSWER || m.kind == FEEDD_ERROR)) {
      if (result) *result = m.body;
      if (m.kind == FEEDD_ANSWER) return FEEDD_OK;
      char message[200];
      feedd_string(feedd_member(m.body, "message"), message, sizeof message);
      return fail(f, FEEDD_REFUSED, message);
    } else if (status == FEEDD_OK) {
      status = keep(f, &m);
    }
  }
  return status;
}

/* --- The copy --- */

/* A row: the element, then the type. */
typedef struct {
  uint32_t size, type_size;
  char text[];
} row;

typedef struct {
  row *head; /* the name as its element, and the key as its type */
  row **rows;
  size_t count, capacity, expected;
} section;

typedef struct {
  size_t section, row;
} position;

struct feedd_mirror {
  section *sections;
  size_t count, filled; /* `filled`: how many sections at the beginning have all rows of the snapshot that arrives */
  int64_t revision, since_revision;
  bool is_whole, has_since;
  feedd_text epoch, since;
};

feedd_mirror *feedd_mirror_new(void) { return calloc(1, sizeof(feedd_mirror)); }

static void free_section(section *s) {
  for (size_t i = 0; i < s->count; i++) free(s->rows[i]);
  free(s->rows);
  free(s->head);
}

static void clear(feedd_mirror *m) {
  for (size_t i = 0; i < m->count; i++) free_section(&m->sections[i]);
  free(m->sections);
  m->sections = NULL;
  m->count = m->filled = 0;
  m->is_whole = false;
}

void feedd_mirror_free(feedd_mirror *m) {
  if (!m) return;
  clear(m);
  feedd_text_free(&m->epoch);
  feedd_text_free(&m->since);
  free(m);
}

/* Gives the copy up: it missed something. */
static feedd_status gap(feedd_mirror *m) {
  clear(m);
  m->has_since = false;
  return FEEDD_GAP;
}

static bool to_size(feedd_value value, size_t *result) {
  int64_t number;
  if (!feedd_integer(value, &number) || number < 0) return false;
  *result = (size_t)number;
  return true;
}

static row *new_row(feedd_value element, feedd_value type) {
  if (element.size > UINT32_MAX || type.size > UINT32_MAX) return NULL;
  row *r = malloc(sizeof *r + element.size + type.size);
  if (!r) return NULL;
  r->size = (uint32_t)element.size;
  r->type_size = (uint32_t)type.size;
  memcpy(r->text, element.text, element.size);
  if (type.size) memcpy(r->text + r->size, type.text, type.size);
  return r;
}

static bool reserve_rows(section *s, size_t count) {
  if (count <= s->capacity) return true;
  size_t capacity = s->capacity ? s->capacity : 8;
  while (capacity < count) capacity *= 2;
  row **grown = realloc(s->rows, capacity * sizeof *grown);
  if (!grown) return false;
  s->rows = grown;
  s->capacity = capacity;
  return true;
}

static size_t count_items(feedd_value array) {
  size_t count = 0;
  feedd_value item;
  for (size_t at = 0; feedd_item(array, &at, &item);) count++;
  return count;
}

static bool set_text(feedd_text *text, feedd_value value) {
  text->size = 0;
  feedd_add_bytes(text, value.text, value.size);
  return !text->failed;
}

/* Makes the sections of a result or a reset, without rows. */
static feedd_status begin(feedd_mirror *m, feedd_value sections) {
  clear(m);
  if (feedd_kind_of(sections) != FEEDD_ARRAY) return gap(m);
  size_t count = count_items(sections);
  m->sections = calloc(count ? count : 1, sizeof *m->sections);
  if (!m->sections) return FEEDD_MEMORY;
  feedd_value item;
  for (size_t at = 0; feedd_item(sections, &at, &item);) {
    feedd_value name = feedd_member(item, "name");
    section *s = &m->sections[m->count];
    if (feedd_kind_of(name) != FEEDD_STRING || !to_size(feedd_member(item, "count"), &s->expected)) return gap(m);
    if (!(s->head = new_row(name, feedd_member(item, "key")))) return FEEDD_MEMORY;
    m->count++;
  }
  return FEEDD_OK;
}

feedd_status feedd_mirror_start(feedd_mirror *m, feedd_value result) {
  feedd_value epoch = feedd_member(result, "epoch"), revision = feedd_member(result, "revision");
  if (feedd_kind_of(epoch) != FEEDD_STRING) return gap(m);
  if (feedd_kind_of(feedd_member(result, "resumed")) == FEEDD_TRUE) {
    bool same = m->epoch.size == epoch.size && memcmp(m->epoch.text, epoch.text, epoch.size) == 0;
    if (!m->has_since || !same) return gap(m);
    m->revision = m->since_revision;
    return FEEDD_OK;
  }
  if (!feedd_integer(revision, &m->revision) || m->revision < 0) return gap(m);
  m->has_since = false;
  if (!set_text(&m->epoch, epoch)) return FEEDD_MEMORY;
  return begin(m, feedd_member(result, "sections"));
}

static feedd_status arrive(feedd_mirror *m, int64_t revision) {
  m->revision = m->since_revision = revision;
  m->is_whole = m->has_since = true;
  return FEEDD_OK;
}

/* Returns the next element with its type; false after the last. */
typedef struct {
  feedd_value elements, types;
  size_t at, type_at;
} content;

static bool next_row(content *c, row **result, bool *fits) {
  feedd_value element, type = {0};
  if (!feedd_item(c->elements, &c->at, &element)) {
    *fits = !c->types.size || !feedd_item(c->types, &c->type_at, &type);
    return false;
  }
  *fits = !c->types.size || feedd_item(c->types, &c->type_at, &type);
  *result = *fits ? new_row(element, type) : NULL;
  return true;
}

/* Returns whether the sections before `end` have all rows of the snapshot. O(1) amortized over its parts. */
static bool are_filled(feedd_mirror *m, size_t end) {
  while (m->filled < end && m->filled < m->count && m->sections[m->filled].count == m->sections[m->filled].expected) m->filled++;
  return m->filled >= end || m->filled == m->count;
}

static feedd_status apply_part(feedd_mirror *m, feedd_value params) {
  feedd_value name, value, at = {0}, last = {0}, reset = {0}, sections = {0};
  content c = {0};
  int64_t revision = -1;
  for (size_t i = 0; feedd_entry(params, &i, &name, &value);) {
    if (feedd_equals(name, "revision") && !feedd_integer(value, &revision)) return gap(m);
    if (feedd_equals(name, "at")) at = value;
    if (feedd_equals(name, "elements")) c.elements = value;
    if (feedd_equals(name, "types") && feedd_kind_of(value) != FEEDD_NULL) c.types = value;
    if (feedd_equals(name, "last")) last = value;
    if (feedd_equals(name, "reset")) reset = value;
    if (feedd_equals(name, "sections")) sections = value;
  }
  if (!m->epoch.size || feedd_kind_of(c.elements) != FEEDD_ARRAY || revision < 0) return gap(m);
  if (feedd_kind_of(reset) == FEEDD_TRUE) {
    feedd_status status = begin(m, sections);
    if (status != FEEDD_OK) return status;
    m->revision = revision;
    m->has_since = false;
  }
  if (m->is_whole || revision != m->revision) return gap(m);
  size_t s, r, i = 0;
  feedd_value first, second;
  if (!feedd_item(at, &i, &first) || !feedd_item(at, &i, &second) || !to_size(first, &s) || !to_size(second, &r)) {
    return gap(m);
  }
  if (!are_filled(m, s)) return gap(m);
  row *fresh;
  bool fits;
  for (bool is_first = true; next_row(&c, &fresh, &fits); is_first = false) {
    if (!fits) return gap(m);
    if (!fresh) return FEEDD_MEMORY;
    /* Rows go on in the next section that is not full; the first one is exactly where the part says. */
    while (!is_first && s < m->count && m->sections[s].count == m->sections[s].expected) {
      s++;
      r = 0;
    }
    if (s >= m->count || m->sections[s].count != r || r >= m->sections[s].expected) {
      free(fresh);
      return gap(m);
    }
    if (!reserve_rows(&m->sections[s], r + 1)) {
      free(fresh);
      return FEEDD_MEMORY;
    }
    m->sections[s].rows[r++] = fresh;
    m->sections[s].count++;
  }
  if (!fits) return gap(m);
  if (feedd_kind_of(last) != FEEDD_TRUE) return FEEDD_OK;
  return are_filled(m, m->count) ? arrive(m, revision) : gap(m);
}

/* Reads a list of ascending positions. Returns NULL, with `*count` 0, for an empty or malformed one. */
static position *positions(feedd_value list, size_t *count, feedd_status *status) {
  size_t total = count_items(list), n = 0;
  *count = 0;
  if (feedd_kind_of(list) != FEEDD_ARRAY) *status = FEEDD_GAP;
  if (!total) return NULL;
  position *result = malloc(total * sizeof *result);
  if (!result) *status = FEEDD_MEMORY;
  feedd_value item, s, r;
  for (size_t at = 0; result && feedd_item(list, &at, &item); n++) {
    size_t inner = 0;
    position *p = &result[n];
    if (!feedd_item(item, &inner, &s) || !feedd_item(item, &inner, &r) || !to_size(s, &p->section) || !to_size(r, &p->row) ||
        (n && !(p[-1].section < p->section || (p[-1].section == p->section && p[-1].row < p->row)))) {
      *status = FEEDD_GAP;
      free(result);
      return NULL;
    }
  }
  *count = result ? n : 0;
  return result;
}

/* Returns the end of the positions from `i` on that are in one section. */
static size_t group_end(const position *list, size_t count, size_t i) {
  size_t j = i;
  while (j < count && list[j].section == list[i].section) j++;
  return j;
}

static bool delete_rows(feedd_mirror *m, const position *list, size_t count) {
  for (size_t i = 0, j; i < count; i = j) {
    j = group_end(list, count, i);
    if (list[i].section >= m->count || list[j - 1].row >= m->sections[list[i].section].count) return false;
    section *s = &m->sections[list[i].section];
    size_t to = list[i].row;
    for (size_t n = i; n < j; n++) {
      size_t from = list[n].row + 1, next = n + 1 < j ? list[n + 1].row : s->count;
      free(s->rows[list[n].row]);
      memmove(&s->rows[to], &s->rows[from], (next - from) * sizeof *s->rows);
      to += next - from;
    }
    s->count -= j - i;
  }
  return true;
}

static feedd_status change_sections(feedd_mirror *m, feedd_value changes) {
  feedd_value deleted = feedd_member(changes, "deleted"), added = feedd_member(changes, "added"), item;
  if (changes.size && feedd_kind_of(changes) != FEEDD_OBJECT) return FEEDD_GAP;
  size_t kept_count = 0, from = 0, place;
  for (size_t at = 0; feedd_item(deleted, &at, &item);) {
    if (!to_size(item, &place) || place < from || place >= m->count) return FEEDD_GAP;
    /* Those before stay; the deleted one goes. A failure later gives up the whole copy. */
    for (; from < place; from++) {
      section moved = m->sections[from];
      m->sections[from] = (section){0};
      m->sections[kept_count++] = moved;
    }
    free_section(&m->sections[from]);
    m->sections[from++] = (section){0};
  }
  if (from) {
    for (; from < m->count; from++) {
      section moved = m->sections[from];
      m->sections[from] = (section){0};
      m->sections[kept_count++] = moved;
    }
    m->count = kept_count;
  }
  size_t more = count_items(added), old = 0, n = 0;
  if (!more) return FEEDD_OK;
  section *grown = calloc(m->count + more, sizeof *grown);
  if (!grown) return FEEDD_MEMORY;
  feedd_status status = FEEDD_OK;
  for (size_t at = 0; status == FEEDD_OK && feedd_item(added, &at, &item);) {
    feedd_value name = feedd_member(item, "name");
    if (!to_size(feedd_member(item, "at"), &place) || place < n || place - n > m->count - old ||
        feedd_kind_of(name) != FEEDD_STRING) {
      status = FEEDD_GAP;
      break;
    }
    while (n < place) grown[n++] = m->sections[old++];
    if (!(grown[n].head = new_row(name, feedd_member(item, "key")))) status = FEEDD_MEMORY;
    n++;
  }
  while (old < m->count) grown[n++] = m->sections[old++];
  free(m->sections);
  m->sections = grown;
  m->count = n;
  return status;
}

/* Adds rows, which become NULL in `rows`. */
static feedd_status add_rows(feedd_mirror *m, const position *list, size_t count, row **rows) {
  for (size_t i = 0, j; i < count; i = j) {
    j = group_end(list, count, i);
    if (list[i].section >= m->count) return FEEDD_GAP;
    section *s = &m->sections[list[i].section];
    for (size_t n = i; n < j; n++) {
      if (list[n].row > s->count + (n - i)) return FEEDD_GAP;
    }
    if (!reserve_rows(s, s->count + (j - i))) return FEEDD_MEMORY;
    /* From the last to the first, so that each row moves once. */
    size_t end_of_old = s->count;
    for (size_t n = j; n-- > i;) {
      size_t shift = n - i + 1, start = list[n].row + 1 - shift;
      memmove(&s->rows[start + shift], &s->rows[start], (end_of_old - start) * sizeof *s->rows);
      end_of_old = start;
      s->rows[list[n].row] = rows[n];
      rows[n] = NULL;
    }
    s->count += j - i;
  }
  return FEEDD_OK;
}

static feedd_status update_rows(feedd_mirror *m, const position *list, size_t count, row **rows) {
  for (size_t i = 0; i < count; i++) {
    if (list[i].section >= m->count || list[i].row >= m->sections[list[i].section].count) return FEEDD_GAP;
    row **place = &m->sections[list[i].section].rows[list[i].row];
    free(*place);
    *place = rows[i];
    rows[i] = NULL;
  }
  return FEEDD_OK;
}

static feedd_status apply_delta(feedd_mirror *m, feedd_value params) {
  feedd_value name, value, deleted = {0}, added = {0}, updated = {0}, sections = {0};
  content c = {0};
  int64_t from = -1, revision = -1;
  for (size_t i = 0; feedd_entry(params, &i, &name, &value);) {
    if (feedd_equals(name, "from") && !feedd_integer(value, &from)) return gap(m);
    if (feedd_equals(name, "revision") && !feedd_integer(value, &revision)) return gap(m);
    if (feedd_equals(name, "deleted")) deleted = value;
    if (feedd_equals(name, "added")) added = value;
    if (feedd_equals(name, "updated")) updated = value;
    if (feedd_equals(name, "sections")) sections = value;
    if (feedd_equals(name, "elements")) c.elements = value;
    if (feedd_equals(name, "types") && feedd_kind_of(value) != FEEDD_NULL) c.types = value;
  }
  if (!m->is_whole || from != m->revision || revision <= from || feedd_kind_of(c.elements) != FEEDD_ARRAY) return gap(m);
  feedd_status status = FEEDD_OK;
  size_t gone, fresh, changed;
  position *d = positions(deleted, &gone, &status);
  position *a = positions(added, &fresh, &status);
  position *u = positions(updated, &changed, &status);
  row **rows = calloc(fresh + changed + 1, sizeof *rows);
  if (!rows) status = FEEDD_MEMORY;
  size_t n = 0;
  bool fits = true;
  for (row *one; status == FEEDD_OK && next_row(&c, &one, &fits); n++) {
    if (!fits || n == fresh + changed) {
      free(one);
      status = FEEDD_GAP;
    } else if (!(rows[n] = one)) {
      status = FEEDD_MEMORY;
    }
  }
  if (status == FEEDD_OK && (n != fresh + changed || !fits)) status = FEEDD_GAP;
  if (status == FEEDD_OK && !delete_rows(m, d, gone)) status = FEEDD_GAP;
  if (status == FEEDD_OK) status = change_sections(m, sections);
  if (status == FEEDD_OK) status = add_rows(m, a, fresh, rows);
  if (status == FEEDD_OK) status = update_rows(m, u, changed, rows + fresh);
  for (size_t i = 0; rows && i < fresh + changed; i++) free(rows[i]);
  free(rows);
  free(d);
  free(a);
  free(u);
  if (status != FEEDD_OK) {
    gap(m);
    return status;
  }
  return arrive(m, revision);
}

feedd_status feedd_mirror_apply(feedd_mirror *m, const feedd_message *message, bool *changed) {
  feedd_status status = FEEDD_OK;
  if (changed) *changed = false;
  switch (message->kind) {
    case FEEDD_SNAPSHOT: status = apply_part(m, message->body); break;
    case FEEDD_DELTA: status = apply_delta(m, message->body); break;
    case FEEDD_BOOKMARK: {
      int64_t revision, current;
      feedd_value epoch = feedd_member(message->body, "epoch");
      if (!m->is_whole || !feedd_integer(feedd_member(message->body, "revision"), &revision) || revision != m->revision ||
          !feedd_integer(feedd_member(message->body, "current"), &current) || current < 0 ||
          feedd_kind_of(epoch) != FEEDD_STRING) {
        return gap(m);
      }
      m->since_revision = current;
      return set_text(&m->epoch, epoch) ? FEEDD_OK : FEEDD_MEMORY;
    }
    default: return FEEDD_OK;
  }
  if (status == FEEDD_MEMORY) gap(m);
  if (status == FEEDD_OK && changed) *changed = m->is_whole;
  return status;
}

bool feedd_mirror_is_whole(const feedd_mirror *m) { return m->is_whole; }
int64_t feedd_mirror_revision(const feedd_mirror *m) { return m->revision; }
size_t feedd_mirror_sections(const feedd_mirror *m) { return m->count; }

const char *feedd_mirror_since(feedd_mirror *m) {
  if (!m->has_since) return NULL;
  m->since.size = 0;
  feedd_add(&m->since, "{\"epoch\":");
  feedd_add_bytes(&m->since, m->epoch.text, m->epoch.size);
  feedd_add(&m->since, ",\"revision\":");
  feedd_add_integer(&m->since, m->since_revision);
  feedd_add_bytes(&m->since, "}", 2);
  return m->since.failed ? NULL : m->since.text;
}

static feedd_value element_of(const row *r) { return (feedd_value){r->text, r->size}; }
static feedd_value type_of(const row *r) { return (feedd_value){r->text + r->size, r->type_size}; }

feedd_value feedd_mirror_name(const feedd_mirror *m, size_t s) {
  return s < m->count ? element_of(m->sections[s].head) : (feedd_value){0};
}
feedd_value feedd_mirror_key(const feedd_mirror *m, size_t s) {
  return s < m->count ? type_of(m->sections[s].head) : (feedd_value){0};
}
size_t feedd_mirror_rows(const feedd_mirror *m, size_t s) { return s < m->count ? m->sections[s].count : 0; }
feedd_value feedd_mirror_element(const feedd_mirror *m, size_t s, size_t r) {
  return r < feedd_mirror_rows(m, s) ? element_of(m->sections[s].rows[r]) : (feedd_value){0};
}
feedd_value feedd_mirror_type(const feedd_mirror *m, size_t s, size_t r) {
  return r < feedd_mirror_rows(m, s) ? type_of(m->sections[s].rows[r]) : (feedd_value){0};
}

static uint32_t crc(const uint32_t table[256], uint32_t sum, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) sum = sum >> 8 ^ table[(sum ^ (unsigned char)bytes[i]) & 0xFF];
  return sum;
}

uint32_t feedd_mirror_digest(const feedd_mirror *m) {
  /* Made for each digest, in microseconds: mirrors of several threads share nothing. */
  uint32_t table[256];
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t x = i;
    for (int bit = 0; bit < 8; bit++) x = x & 1 ? x >> 1 ^ 0xEDB88320u : x >> 1;
    table[i] = x;
  }
  uint32_t sum = crc(table, 0xFFFFFFFFu, "[", 1);
  for (size_t s = 0; s < m->count; s++) {
    sum = s ? crc(table, sum, ",[", 2) : crc(table, sum, "[", 1);
    for (size_t r = 0; r < m->sections[s].count; r++) {
      if (r) sum = crc(table, sum, ",", 1);
      sum = crc(table, sum, m->sections[s].rows[r]->text, m->sections[s].rows[r]->size);
    }
    sum = crc(table, sum, "]", 1);
  }
  return ~crc(table, sum, "]", 1);
}

/* --- Following --- */

/* The code of a `watch` that a member of a group refuses until it has reached `since`. */
#define BEHIND -32008

struct feedd_follower {
  char *path, *client, *feed, *options;
  feedd *f;
  feedd_mirror *mirror;
  int64_t watch, retry_at; /* the id of the watch that is not answered, 0 if none */
  int pause;
  bool is_anew; /* whether the last watch was for a gap, and no step came since */
  feedd_status ended;
  char reason[256];
};

static char *copy_of(const char *text) { return text ? strdup(text) : NULL; }

feedd_follower *feedd_follow(const char *path, const char *client, const char *feed, const char *options) {
  feedd_follower *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->path = copy_of(path);
  w->client = copy_of(client);
  w->feed = copy_of(feed);
  w->options = copy_of(options);
  w->mirror = feedd_mirror_new();
  w->pause = 50;
  if ((path && !w->path) || (client && !w->client) || !w->feed || (options && !w->options) || !w->mirror) {
    feedd_follower_free(w);
    return NULL;
  }
  return w;
}

void feedd_follower_free(feedd_follower *w) {
  if (!w) return;
  feedd_close(w->f);
  feedd_mirror_free(w->mirror);
  free(w->path);
  free(w->client);
  free(w->feed);
  free(w->options);
  free(w);
}

int feedd_follower_fd(const feedd_follower *w) { return w->f ? feedd_fd(w->f) : -1; }
short feedd_follower_events(const feedd_follower *w) { return (short)(w->f ? feedd_events(w->f) : 0); }
const char *feedd_follower_reason(const feedd_follower *w) { return w->reason; }

int feedd_follower_timeout(const feedd_follower *w) {
  size_t length;
  if (w->ended != FEEDD_OK) return 0;
  if (w->f) return has_frame(w->f, &length) || w->f->is_at_end || w->f->ended != FEEDD_OK ? 0 : -1;
  int64_t left = w->retry_at - now();
  return left < 0 ? 0 : (int)left;
}

static feedd_status finish(feedd_follower *w, feedd_status status, const char *reason) {
  w->ended = status;
  snprintf(w->reason, sizeof w->reason, "%s", reason);
  feedd_close(w->f);
  w->f = NULL;
  return status;
}

/* Connects again later. */
static feedd_status retry(feedd_follower *w, const char *reason) {
  snprintf(w->reason, sizeof w->reason, "%s", reason);
  feedd_close(w->f);
  w->f = NULL;
  w->watch = 0;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  w->retry_at = now() + w->pause / 2 + (int)(time.tv_nsec / 1000 % (w->pause / 2 + 1));
  w->pause = w->pause * 2 > 5000 ? 5000 : w->pause * 2;
  return FEEDD_AGAIN;
}

/* Whether there is a copy with these options of `watch`. Those that are not JSON are refused when they are sent. */
static bool allow_copy(const char *options) {
  feedd_text text = {0};
  feedd_value object = {0};
  feedd_add(&text, "{");
  feedd_add(&text, options);
  feedd_add(&text, "}");
  bool is_json = !text.failed && feedd_json(text.text, text.size, &object);
  bool allowed = !is_json || (feedd_kind_of(feedd_member(object, "since")) == FEEDD_ABSENT &&
                              feedd_kind_of(feedd_member(object, "initial")) != FEEDD_FALSE &&
                              feedd_kind_of(feedd_member(object, "elements")) != FEEDD_FALSE);
  feedd_text_free(&text);
  return allowed;
}

static feedd_status watch_again(feedd_follower *w) {
  feedd_text options = {0};
  const char *since = feedd_mirror_since(w->mirror);
  feedd_add(&options, "\"spanning\":true");
  if (since) {
    feedd_add(&options, ",\"since\":");
    feedd_add(&options, since);
  }
  if (w->options && *w->options) {
    feedd_add(&options, ",");
    feedd_add(&options, w->options);
  }
  feedd_add_bytes(&options, "", 1);
  feedd_status status = options.failed ? FEEDD_MEMORY : feedd_watch(w->f, w->feed, options.text, &w->watch);
  feedd_text_free(&options);
  return status;
}

/* Handles one message. FEEDD_OK with `*is_step` true if it completed a step. */
static feedd_status take(feedd_follower *w, const feedd_message *m, feedd_update *update, bool *is_step) {
  *is_step = false;
  if (m->kind == FEEDD_ERROR) {
    char message[200];
    feedd_string(feedd_member(m->body, "message"), message, sizeof message);
    int64_t code;
    bool is_behind = m->id == w->watch && feedd_integer(feedd_member(m->body, "code"), &code) && code == BEHIND;
    return is_behind ? retry(w, message) : finish(w, FEEDD_REFUSED, message);
  }
  feedd_status status = FEEDD_OK;
  if (m->kind == FEEDD_ANSWER) {
    if (m->id != w->watch) return FEEDD_OK;
    w->watch = 0;
    w->pause = 50;
    status = feedd_mirror_start(w->mirror, m->body);
  } else if (w->watch == 0) {
    status = feedd_mirror_apply(w->mirror, m, is_step);
  }
  if (status == FEEDD_GAP) {
    if (w->is_anew) return finish(w, FEEDD_MALFORMED, "the daemon does not speak this protocol: gaps, also after a new watch");
    w->is_anew = true;
    return watch_again(w);
  }
  if (*is_step) w->is_anew = false;
  if (*is_step) *update = (feedd_update){w->mirror, m->kind, m->kind == FEEDD_DELTA ? m->body : (feedd_value){0}};
  return status;
}

feedd_status feedd_follower_next(feedd_follower *w, feedd_update *update) {
  if (w->ended != FEEDD_OK) return w->ended;
  if (!w->f) {
    if (now() < w->retry_at) return FEEDD_AGAIN;
    if (w->options && !allow_copy(w->options)) {
      return finish(w, FEEDD_INVALID, "a follower keeps a copy and does not take since, initial or elements: use feedd_watch");
    }
    feedd_status status = feedd_open(&w->f, w->path, w->client);
    /* A user who may not open the socket would wait in vain. */
    if (status == FEEDD_CLOSED && errno != EACCES) return retry(w, strerror(errno));
    if (status != FEEDD_OK) return finish(w, status, strerror(errno));
    status = watch_again(w);
    if (status != FEEDD_OK) return finish(w, status, feedd_reason(w->f));
  }
  feedd_status status = FEEDD_OK;
  for (bool is_fresh = false; status == FEEDD_OK;) {
    feedd_message m;
    bool is_step;
    status = feedd_next(w->f, &m);
    if (status == FEEDD_AGAIN && !is_fresh) {
      is_fresh = true;
      status = feedd_process(w->f);
      continue;
    }
    if (status != FEEDD_OK) break;
    status = take(w, &m, update, &is_step);
    if (w->ended != FEEDD_OK) return w->ended;
    if (status == FEEDD_OK && is_step) {
      if (feedd_kind_of(feedd_member(m.body, "ended")) == FEEDD_TRUE) {
        snprintf(w->reason, sizeof w->reason, "the feed was removed");
        w->ended = FEEDD_CLOSED;
      }
      return FEEDD_OK;
    }
  }
  if (status == FEEDD_AGAIN) {
    if (w->f) feedd_process(w->f); /* what was sent meanwhile */
    return FEEDD_AGAIN;
  }
  char reason[256];
  snprintf(reason, sizeof reason, "%s", feedd_reason(w->f));
  return status == FEEDD_CLOSED ? retry(w, reason) : finish(w, status, reason);
}

feedd_status feedd_follower_wait(feedd_follower *w, int timeout, feedd_update *update) {
  int64_t limit = timeout < 0 ? -1 : now() + timeout;
  for (;;) {
    feedd_status status = feedd_follower_next(w, update);
    if (status != FEEDD_AGAIN) return status;
    int64_t left = limit < 0 ? -1 : limit - now();
    if (limit >= 0 && left <= 0) return FEEDD_TIMEOUT;
    int wait = feedd_follower_timeout(w);
    if (wait < 0 || (left >= 0 && left < wait)) wait = left > INT_MAX ? INT_MAX : (int)left;
    struct pollfd p = {feedd_follower_fd(w), feedd_follower_events(w), 0};
    poll(&p, 1, wait);
  }
}
