/* Any bytes through the reader; what it accepts goes through everything that handles a profile, and must come back
 * equal. */
#include "core/pprof_reader.h"
#include "core/pprof_writer.h"
#include "core/profile_merge.h"
#include "core/profile_view.h"
#include "profile_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { LIMIT = 64 << 20 };

static void must(bool condition) {
  if (!condition) abort();
}

static void same_when_written(const sn_profile *profile) {
  sn_memory memory;
  sn_sink sink;
  sn_profile again;
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  must(sn_pprof_write(profile, "ruby", &sink) == SN_OK);
  must(sn_profile_init(&again, 0) == SN_OK);
  char error[100];
  if (sn_pprof_read(&again, sink.bytes, sink.length, error, sizeof(error)) != SN_OK) {
    fprintf(stderr, "our own output: %s\n", error);
    abort();
  }
  char *a = profile_text(profile), *b = profile_text(&again);
  must(strcmp(a, b) == 0);
  free(a);
  free(b);
  sn_profile_destroy(&again);
  sn_sink_destroy(&sink);
}

static void use(const sn_profile *profile) {
  sn_profile merged;
  sn_top_entry top[5];
  int64_t totals[SN_PROFILE_MAX_TYPES];
  uint32_t count;
  sn_profile_totals(profile, totals);
  for (uint32_t i = 0; i < profile->type_count; i++) {
    must(sn_profile_top(profile, i, SN_TOP_BY_CUMULATIVE, top, 5, &count) == SN_OK);
  }
  must(sn_profile_init(&merged, LIMIT) == SN_OK);
  const sn_status status = sn_profile_merge(&merged, profile, NULL, 0);
  must(status == SN_OK || status == SN_FULL);
  if (status == SN_OK) (void)!sn_profile_merge(&merged, profile, (const char *const[]){"pid", "1"}, 1);
  sn_profile_destroy(&merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  sn_profile profile;
  char error[64];
  must(sn_profile_init(&profile, LIMIT) == SN_OK);
  const sn_status status = sn_pprof_read(&profile, bytes, length, error, sizeof(error));
  must(status != SN_INVALID && memchr(error, '\0', sizeof(error)) != NULL);
  must((status == SN_OK) == (error[0] == '\0'));
  if (status == SN_OK) {
    same_when_written(&profile);
    use(&profile);
  }
  sn_profile_destroy(&profile);
  return 0;
}

#include "../fuzz/standalone.h"
