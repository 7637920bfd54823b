/* pprof_tool: our writer and reader as a command, for truth.sh and for the fuzzer's seeds.
 *
 *   pprof_tool example > FILE          the worked example
 *   pprof_tool random SEED N > FILE    N random samples
 *   pprof_tool copy < FILE > FILE      reads and writes
 *   pprof_tool top < FILE              "<flat> <cumulative> <function>", by the default type
 */
#include "core/pprof_reader.h"
#include "core/pprof_writer.h"
#include "core/profile_view.h"
#include "profile_text.h"

static void check(sn_status status, const char *what) {
  if (status == SN_OK) return;
  fprintf(stderr, "pprof_tool: %s: %s\n", sn_status_text(status), what);
  exit(1);
}

static void write_out(const sn_profile *profile) {
  sn_memory memory;
  sn_sink sink;
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  check(sn_pprof_write(profile, "ruby", &sink), "writing");
  fwrite(sink.bytes, 1, sink.length, stdout);
  sn_sink_destroy(&sink);
}

static void read_in(sn_profile *profile) {
  static uint8_t bytes[1 << 24];
  char error[200];
  const size_t length = fread(bytes, 1, sizeof(bytes), stdin);
  check(sn_profile_init(profile, 0), "starting");
  check(sn_pprof_read(profile, bytes, length, error, sizeof(error)), error);
}

static void print_top(const sn_profile *profile) {
  sn_top_entry top[10];
  uint32_t count;
  const int type = sn_profile_find_type(profile, string_of(profile, profile->default_type));
  check(sn_profile_top(profile, (uint32_t)type, SN_TOP_BY_FLAT, top, 10, &count), "top");
  for (uint32_t i = 0; i < count; i++) {
    printf("%" PRId64 " %" PRId64 " %s\n", top[i].flat, top[i].cumulative,
           string_of(profile, profile->functions[top[i].function].name));
  }
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  sn_profile profile;
  if (strcmp(command, "example") == 0) {
    make_example(&profile);
  } else if (strcmp(command, "random") == 0 && argc > 3) {
    make_random(&profile, strtoull(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
  } else {
    read_in(&profile);
  }
  if (strcmp(command, "top") == 0) {
    print_top(&profile);
  } else {
    write_out(&profile);
  }
  sn_profile_destroy(&profile);
  return 0;
}
