/* Prints a feed after every change, whatever happens to the daemon: watch FEED */
#include <feedd.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: watch FEED\n"), 2;
  feedd_follower *follower = feedd_follow(NULL, "watch", argv[1], NULL);
  feedd_status status = follower ? FEEDD_OK : FEEDD_MEMORY;
  for (feedd_update update; status == FEEDD_OK && (status = feedd_follower_wait(follower, -1, &update)) == FEEDD_OK;) {
    printf("revision %lld\n", (long long)feedd_mirror_revision(update.mirror));
    for (size_t s = 0; s < feedd_mirror_sections(update.mirror); s++) {
      for (size_t r = 0; r < feedd_mirror_rows(update.mirror, s); r++) {
        feedd_value element = feedd_mirror_element(update.mirror, s, r);
        printf("  [%zu,%zu] %.*s\n", s, r, (int)element.size, element.text);
      }
    }
    fflush(stdout);
  }
  fprintf(stderr, "watch: %s\n", follower ? feedd_follower_reason(follower) : feedd_status_text(status));
  feedd_follower_free(follower);
  return 1;
}
