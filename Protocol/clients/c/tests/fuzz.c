/* What a daemon may send, fed to a connection and a copy: for libFuzzer, or, with STANDALONE, for mutations of recorded bytes.
 *   clang -g -fsanitize=fuzzer,address,undefined fuzz.c -o fuzz && ./fuzz
 *   cc -g -DSTANDALONE -fsanitize=address,undefined fuzz.c -o fuzz && ./fuzz COUNT SEED FILE...
 */
#include "../feedd.c"

/* Reads every value of a checked text in every way. */
static size_t walk(feedd_value value, int levels) {
  char buffer[16];
  int64_t integer;
  size_t sum = feedd_string(value, buffer, sizeof buffer) + feedd_integer(value, &integer);
  sum += feedd_double(value, 0) > 0;
  if (levels == 0) return sum;
  feedd_value name, item;
  for (size_t at = 0; feedd_item(value, &at, &item);) sum += walk(item, levels - 1);
  for (size_t at = 0; feedd_entry(value, &at, &name, &item);) sum += walk(name, 0) + walk(item, levels - 1);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int pair[2];
  if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) return 0;
  feedd *f = calloc(1, sizeof *f);
  f->fd = pair[0];
  f->last = &f->first;
  f->hello_id = f->last_id = 1;
  feedd_mirror *mirror = feedd_mirror_new();
  feedd_watch(f, "f", NULL, NULL);
  size_t sent = 0, step = (size_t)data[0] * data[0] + 1;
  data++, size--;
  bool is_open = true;
  feedd_status status = FEEDD_OK;
  while (status == FEEDD_OK || status == FEEDD_AGAIN || status == FEEDD_GAP) {
    if (is_open) {
      size_t part = size - sent < step ? size - sent : step;
      ssize_t n = part ? write(pair[1], data + sent, part) : 0;
      if (n > 0) sent += (size_t)n;
      if (sent == size) is_open = close(pair[1]) != 0;
    }
    feedd_process(f);
    feedd_message m;
    while ((status = feedd_next(f, &m)) == FEEDD_OK) {
      walk(m.whole, 3);
      if (m.kind == FEEDD_ANSWER) {
        status = feedd_mirror_start(mirror, m.body);
      } else {
        status = feedd_mirror_apply(mirror, &m, NULL);
      }
      const char *since = feedd_mirror_since(mirror);
      feedd_value value;
      if (since && !feedd_json(since, strlen(since), &value)) abort();
      if (feedd_mirror_is_whole(mirror)) feedd_mirror_digest(mirror);
    }
  }
  if (is_open) close(pair[1]);
  feedd_mirror_free(mirror);
  feedd_close(f);
  return 0;
}

#ifdef STANDALONE
static uint64_t state;
static uint64_t random_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void mutate(uint8_t *bytes, size_t *size, size_t capacity) {
  static const char *const words[] = {"0", "-1", "99999999999999999999", "null", "[]", "{}", "\"", ",", "true", "[0,0]", "[[0,0]]"};
  for (uint64_t times = random_number() % 4; times > 0; times--) {
    size_t at = random_number() % *size, end = at + random_number() % 8;
    if (end > *size) end = *size;
    const char *word = words[random_number() % (sizeof words / sizeof *words)];
    size_t length = strlen(word);
    switch (random_number() % 4) {
      case 0: bytes[at] ^= (uint8_t)(1u << (random_number() % 8)); break;
      case 1: /* cut */
        memmove(bytes + at, bytes + end, *size - end);
        *size -= end - at;
        break;
      case 2: /* insert */
        if (*size + length > capacity) break;
        memmove(bytes + at + length, bytes + at, *size - at);
        memcpy(bytes + at, word, length);
        *size += length;
        break;
      default: *size = at + 1;
    }
    if (*size == 0) *size = 1;
  }
}

/* Gives each frame the length that it has after the mutations, as far as one begins. Frames are lines of a file. */
static size_t framed(const uint8_t *lines, size_t size, uint8_t *out) {
  size_t total = 0;
  for (size_t at = 0; at < size;) {
    const uint8_t *newline = memchr(lines + at, '\n', size - at);
    size_t length = newline ? (size_t)(newline - (lines + at)) : size - at;
    size_t said = random_number() % 50 ? length : random_number() % 70000;
    for (int i = 0; i < 4; i++) out[total++] = (uint8_t)(said >> (24 - 8 * i));
    memcpy(out + total, lines + at, length);
    total += length;
    at += length + 1;
  }
  return total;
}

int main(int argc, char **argv) {
  static uint8_t lines[1 << 16], bytes[1 << 20];
  long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
  state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 2654435761u + 88172645463325252ull;
  for (long i = 0; argc > 3 && i < count; i++) {
    FILE *file = fopen(argv[3 + i % (argc - 3)], "rb");
    if (!file) return 1;
    size_t size = fread(lines, 1, sizeof lines - 4096, file);
    fclose(file);
    mutate(lines, &size, sizeof lines);
    bytes[0] = (uint8_t)random_number();
    LLVMFuzzerTestOneInput(bytes, 1 + framed(lines, size, bytes + 1));
  }
  return 0;
}
#endif
