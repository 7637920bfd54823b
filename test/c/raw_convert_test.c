#include "core/raw_convert.h"
#include "profile_text.h"

enum { ALL = (1 << SN_COLUMN_COUNT) - 1 };

typedef struct setup {
  sn_memory memory;
  sn_raw_store store;
  sn_profile out;
  uint32_t locations[100];
  sn_convert_input input;
} setup;

static void begin(setup *s) {
  sn_memory_init(&s->memory, 0);
  EXPECT_EQ(sn_raw_store_init(&s->store, &s->memory), SN_OK);
  EXPECT_EQ(sn_profile_init(&s->out, 0), SN_OK);
  s->input = (sn_convert_input){.store = &s->store, .locations = s->locations, .columns = ALL, .gc_time = -1};
}

static uint32_t stack(setup *s, uint64_t frame_word) {
  return sn_raw_store_stack(&s->store, &frame_word, NULL, (int32_t[]){7}, 1);
}

static void book(setup *s, uint64_t frame_word, uint32_t thread, sn_column column, int64_t value) {
  sn_raw_store_add(&s->store, (sn_row_key){.stack = stack(s, frame_word), .thread = thread, .state = SN_STATE_RUNNING},
                   column, value);
}

static void convert(setup *s) {
  char name[32];
  for (uint32_t i = 0; i < atomic_load(&s->store.location_count); i++) {
    snprintf(name, sizeof(name), "f%llu", (unsigned long long)s->store.locations[i].frame);
    s->locations[i] = frame(&s->out, name, "a.rb", 1, s->store.locations[i].line);
  }
  EXPECT_EQ(sn_raw_convert(&s->input, &s->out), SN_OK);
}

/* Sum of a type over samples whose leaf has this name (NULL: all) and whose thread id is this (NULL: all). */
static int64_t sum(const sn_profile *out, const char *type, const char *name, const char *thread) {
  const int column = sn_profile_find_type(out, type);
  int64_t result = 0;
  EXPECT(column >= 0);
  for (uint32_t i = 0; column >= 0 && i < out->sample_count; i++) {
    char wanted[64] = "", *text = sample_text(out, i);
    if (thread != NULL) snprintf(wanted, sizeof(wanted), " thread id=%s ", thread);
    if ((name == NULL || strncmp(text, name, strlen(name)) == 0) && strstr(text, wanted) != NULL) {
      result += out->values[i * out->type_count + (uint32_t)column];
    }
    free(text);
  }
  return result;
}

static void end(setup *s) {
  sn_raw_store_destroy(&s->store);
  sn_profile_destroy(&s->out);
  EXPECT_EQ(s->memory.used, 0);
}

static void exact(void) {
  setup s;
  uint64_t seed = 1;
  const sn_thread_summary threads[] = {{.number = 1, .cpu_time = 1000000007, .id = "one", .id_length = 3},
                                       {.number = 5, .cpu_time = INT64_MAX, .id = "five", .id_length = 4},
                                       {.number = 9, .cpu_time = 3, .id = "nine", .id_length = 4}};
  begin(&s);
  s.input.threads = threads;
  s.input.thread_count = 3;
  for (uint64_t i = 0; i < 40; i++) {
    book(&s, 5000 + i, 1, SN_CPU_TIME, below(&seed, 1000000));
    book(&s, 5000 + i, 5, SN_CPU_TIME, INT64_MAX / 2); /* the sum of the weights saturates */
    book(&s, 5000 + i, 9, SN_CPU_TIME, 1000);
  }
  convert(&s);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, "one"), 1000000007);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, "five"), INT64_MAX);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, "nine"), 3);
  for (uint32_t i = 0; i < s.out.sample_count; i++) EXPECT(s.out.values[(size_t)i * SN_COLUMN_COUNT] >= 0);
  end(&s);
}

static void shares(void) {
  setup s;
  const sn_thread_summary thread = {
      .number = 1, .cpu_time = 900, .id = "t", .id_length = 1, .name = "main", .name_length = 4};
  begin(&s);
  s.input.threads = &thread;
  s.input.thread_count = 1;
  book(&s, 5001, 1, SN_CPU_TIME, 10);
  book(&s, 5002, 1, SN_CPU_TIME, 20);
  book(&s, 5002, 1, SN_CPU_SAMPLES, 2);
  book(&s, 5003, 1, SN_CPU_TIME, -5); /* never negative */
  convert(&s);
  char *text = profile_text(&s.out);
  EXPECT(strstr(text, "f5001 a.rb:7(1); state=running thread id=t thread name=main -> 300 0") != NULL);
  EXPECT(strstr(text, "f5002 a.rb:7(1); state=running thread id=t thread name=main -> 600 2") != NULL);
  EXPECT(strstr(text, "f5003") == NULL);
  EXPECT(strstr(text, "default cpu-time") != NULL);
  free(text);
  end(&s);
}

static void fallback(void) {
  setup s;
  begin(&s);
  const sn_thread_summary thread = {
      .number = 2, .cpu_time = 77, .fallback_stack = stack(&s, SN_FRAME_NOT_SAMPLED), .id = "t", .id_length = 1};
  s.input.threads = &thread;
  s.input.thread_count = 1;
  book(&s, 5001, 2, SN_WALL_TIME, 10);
  convert(&s);
  EXPECT_EQ(sum(&s.out, "cpu-time", "f3 ", "t"), 77);
  EXPECT_EQ(sum(&s.out, "cpu-samples", NULL, NULL), 0);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, NULL), 77);
  EXPECT_EQ(sum(&s.out, "wall-time", NULL, NULL), 10);
  end(&s);
}

static void unknown(void) {
  setup s;
  begin(&s);
  const sn_thread_summary thread = {.number = 2, .cpu_time = -1};
  s.input.threads = &thread;
  s.input.thread_count = 1;
  book(&s, 5001, 2, SN_CPU_TIME, 11);
  book(&s, 5001, 3, SN_CPU_TIME, 13);
  convert(&s);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, NULL), 24);
  end(&s);
}

static void overflowed(void) {
  setup s;
  begin(&s);
  const sn_thread_summary threads[] = {{.number = 1, .cpu_time = 1000, .id = "a", .id_length = 1},
                                       {.number = 2, .cpu_time = 501, .id = "b", .id_length = 1}};
  s.input.threads = threads;
  s.input.thread_count = 2;
  book(&s, 5001, 1, SN_CPU_TIME, 60);
  book(&s, 5001, 2, SN_CPU_TIME, 20);
  s.store.rows[0].values[SN_CPU_TIME] += 20;
  convert(&s);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, NULL), 1501);
  EXPECT_EQ(sum(&s.out, "cpu-time", "f1 ", NULL), 300);
  EXPECT_EQ(sum(&s.out, "cpu-time", NULL, "a"), 800);
  end(&s);
}

static void gc(void) {
  setup s;
  begin(&s);
  s.input.gc_time = 1000;
  book(&s, 5001, 1, SN_GC_TIME, 1);
  book(&s, 5002, 2, SN_GC_TIME, 2);
  book(&s, 5002, 2, SN_WALL_TIME, 2);
  convert(&s);
  EXPECT_EQ(sum(&s.out, "gc-time", "f5001", NULL), 333);
  EXPECT_EQ(sum(&s.out, "gc-time", NULL, NULL), 1000);
  end(&s);
}

static void columns(void) {
  setup s;
  begin(&s);
  s.input.columns = 1u << SN_WALL_TIME | 1u << SN_ALLOC_SIZE;
  book(&s, 5001, 1, SN_ALLOC_SIZE, 8);
  book(&s, 5002, 1, SN_CPU_TIME, 8); /* nobody asked: no sample */
  convert(&s);
  char *text = profile_text(&s.out);
  EXPECT_TEXT(text,
              "wall-time/nanoseconds alloc-size/bytes default wall-time period / 0 time 0 duration 0\n"
              "f5001 a.rb:7(1); state=running -> 0 8\n");
  free(text);
  EXPECT_EQ(s.out.sample_count, 1);
  end(&s);
}

static void no_columns(void) {
  setup s;
  begin(&s);
  s.input.columns = 0;
  EXPECT_EQ(sn_raw_convert(&s.input, &s.out), SN_INVALID);
  end(&s);
}

static void own_labels(void) {
  setup s;
  uint32_t sets[2] = {0};
  begin(&s);
  const sn_label label = {.key = intern(&s.out, "customer"), .str = intern(&s.out, "acme")};
  EXPECT_EQ(sn_profile_labels(&s.out, &label, 1, &sets[1]), SN_OK);
  s.input.label_sets = sets;
  s.input.label_set_count = 2;
  s.input.columns = 1u << SN_WALL_TIME;
  const uint32_t id = stack(&s, 5001);
  sn_raw_store_add(&s.store, (sn_row_key){.stack = id, .labels = 1, .state = SN_STATE_BLOCKED}, SN_WALL_TIME, 5);
  sn_raw_store_add(&s.store, (sn_row_key){.stack = id, .labels = 0, .state = SN_STATE_NATIVE}, SN_WALL_TIME, 6);
  sn_raw_store_add(&s.store, (sn_row_key){.stack = id, .labels = 0, .state = SN_STATE_GVL_WAIT}, SN_WALL_TIME, 7);
  convert(&s);
  char *text = profile_text(&s.out);
  EXPECT(strstr(text, "; customer=acme state=blocked -> 5") != NULL);
  EXPECT(strstr(text, "; state=native -> 6") != NULL);
  EXPECT(strstr(text, "; state=gvl-wait -> 7") != NULL);
  free(text);
  end(&s);
}

static void allocations(void) {
  setup s;
  begin(&s);
  book(&s, 5001, 0, SN_ALLOC_SAMPLES, 2000);
  book(&s, 5001, 0, SN_ALLOC_SIZE, 80000);
  book(&s, 5002, 0, SN_ALLOC_SAMPLES, 1000);
  book(&s, 5002, 0, SN_ALLOC_SAMPLES_UNSCALED, 7);
  s.input.alloc_total = 10000001;
  s.input.columns = 7u << SN_ALLOC_SAMPLES;
  convert(&s);
  EXPECT_EQ(sum(&s.out, "alloc-samples", NULL, NULL), 10000001);
  EXPECT_EQ(sum(&s.out, "alloc-samples", "f5001", NULL), 6666667);
  EXPECT_EQ(sum(&s.out, "alloc-samples", "f5002", NULL), 3333334);
  EXPECT_EQ(sum(&s.out, "alloc-samples-unscaled", NULL, NULL), 7);
  EXPECT_EQ(sum(&s.out, "alloc-size", "f5001", NULL), 266666693);
  size_t length;
  EXPECT_TEXT(sn_string_table_get(&s.out.strings, s.out.default_type, &length), "alloc-samples");
  end(&s);
}

static void detail_labels(void) {
  setup s;
  sn_detail_labels labels[3] = {{.count = 0}};
  begin(&s);
  s.input.columns = 1u << SN_ALLOC_SAMPLES;
  s.input.details = labels;
  const uint32_t id = stack(&s, 5001);
  for (uint32_t i = 0; i < 3; i++) {
    sn_row_key key = {.stack = id};
    key.detail = i == 0 ? 0 : sn_detail_table_intern(&s.store.details, (sn_raw_detail){4096 + i, SN_DETAIL_LIVE, i});
    sn_raw_store_add(&s.store, key, SN_ALLOC_SAMPLES, 5 + i);
    labels[i].count = i;
    labels[i].labels[0] = (sn_label){.key = intern(&s.out, "class"), .str = intern(&s.out, i == 1 ? "One" : "Two")};
    labels[i].labels[1] = (sn_label){.key = intern(&s.out, "age"), .num = 9};
  }
  convert(&s);
  char *text = profile_text(&s.out);
  EXPECT(strstr(text, "class=One -> 6") != NULL);
  EXPECT(strstr(text, "age=9 class=Two -> 7") != NULL || strstr(text, "class=Two age=9 -> 7") != NULL);
  EXPECT_EQ(sum(&s.out, "alloc-samples", NULL, NULL), 18);
  free(text);
  end(&s);
}

int main(void) {
  test("the CPU time of each thread is exact, whatever the weights", exact);
  test("a thread's CPU time is shared in proportion to the weights", shares);
  test("a thread that burned CPU unseen gets one row with its fallback stack", fallback);
  test("without exact time, or without a summary, the weights stand", unknown);
  test("overflowed weight gets its part of everybody's time", overflowed);
  test("GC time is spread over all rows that have some", gc);
  test("only the columns asked for become sample types", columns);
  test("no column at all is a mistake", no_columns);
  test("a row's own labels stand beside thread and state", own_labels);
  test("allocations are scaled to the VM's count, sizes by the same factor", allocations);
  test("a row's detail becomes labels", detail_labels);
  return finish(__FILE__);
}
