/* Random operations on the raw store and on a profile, and on their slow twins; then both are compared. */
#include "model/profile_model.h"
#include "model/raw_store_model.h"

static raw_store_model raw_model;
static profile_model text_model;

static bool same_stacks(const sn_raw_store *store, const raw_store_model *model) {
  if (store->stacks.count != model->stack_count) return false;
  for (uint32_t i = 0; i < model->stack_count; i++) {
    uint32_t n;
    const uint32_t *ids = sn_stack_table_get(&store->stacks, i, &n);
    if (n != model->stacks[i].n) return false;
    for (uint32_t k = 0; k < n; k++) {
      const sn_raw_location *location = &store->locations[ids[k]];
      if (location->frame != model->stacks[i].frames[k] || location->line != model->stacks[i].lines[k]) return false;
    }
  }
  return true;
}

static bool same_rows(const sn_raw_store *store, const raw_store_model *model) {
  if (store->row_count != model->row_count) return false;
  for (uint32_t i = 0; i < model->row_count; i++) {
    const sn_row *a = &store->rows[i], *b = &model->rows[i];
    if (memcmp(&a->key, &b->key, sizeof(a->key)) != 0) return false;
    if (memcmp(a->values, b->values, sizeof(a->values)) != 0) return false;
  }
  return true;
}

static void random_write(sn_raw_store *store, raw_store_model *model, uint64_t *seed) {
  uint64_t frames[MODEL_DEPTH];
  int32_t lines[MODEL_DEPTH];
  const uint32_t n = 1 + below(seed, below(seed, 2) ? 4 : MODEL_DEPTH);
  for (uint32_t i = 0; i < n; i++) {
    frames[i] = SN_FRAME_FIRST_REAL + below(seed, 3);
    lines[i] = (int32_t)below(seed, 2);
  }
  const sn_column column = (sn_column)below(seed, SN_COLUMN_COUNT);
  sn_row_key key = {.thread = below(seed, 3), .labels = below(seed, 2), .state = below(seed, SN_STATE_COUNT)};
  key.stack = sn_raw_store_stack(store, frames, NULL, lines, n);
  sn_raw_store_add(store, key, column, 1 + (int64_t)n);
  key.stack = model_stack_id(model, frames, lines, n);
  model_add(model, key, column, 1 + (int64_t)n);
}

static bool raw_store_agrees(uint64_t seed, bool broken) {
  sn_memory memory;
  sn_raw_store store;
  bool agrees = true;
  raw_model.broken = broken;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_raw_store_init(&store, &memory), SN_OK);
  for (int round = 0; round < 3; round++) {
    model_reset(&raw_model);
    for (int i = 0; i < 1500; i++) random_write(&store, &raw_model, &seed);
    agrees = agrees && same_stacks(&store, &raw_model) && same_rows(&store, &raw_model);
    sn_raw_store_reset(&store);
  }
  sn_raw_store_destroy(&store);
  return agrees;
}

static void raw_store(void) {
  for (uint64_t seed = 0; seed < 10; seed++) EXPECT(raw_store_agrees(seed, false));
}

static void raw_store_notices(void) {
  EXPECT(!raw_store_agrees(1, true));
  raw_model.broken = false;
}

static void random_sample(sn_profile *profile, profile_model *model, uint64_t *seed) {
  static const char *const names[] = {"f", "g", "h", ""};
  uint32_t frames[6];
  text_buffer key = {0};
  const uint32_t n = below(seed, 7);
  for (uint32_t i = 0; i < n; i++) {
    const char *name = names[below(seed, 4)];
    const uint32_t line = below(seed, 2);
    frames[i] = frame(profile, name, "x.rb", 0, line);
    put(&key, "%s x.rb:%u(0);", name, line);
  }
  sn_label label = {.key = intern(profile, "k"), .num = below(seed, 3)};
  const uint32_t labels = below(seed, 2);
  if (labels == 1) put(&key, " k=%d", (int)label.num);
  const int64_t values[MODEL_TYPES] = {1, (int64_t)below(seed, 1000) - 500};
  add_sample(profile, frames, n, &label, labels, values);
  profile_model_add(model, key.bytes == NULL ? "" : key.bytes, values);
  free(key.bytes);
}

static bool profile_agrees(uint64_t seed, bool broken) {
  sn_profile profile;
  text_model.broken = broken;
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "a", "count");
  add_type(&profile, "b", "count");
  for (int i = 0; i < 3000; i++) random_sample(&profile, &text_model, &seed);
  bool agrees = profile.sample_count == text_model.count;
  for (uint32_t i = 0; agrees && i < text_model.count; i++) {
    char *text = sample_text(&profile, i);
    text_buffer wanted = {0};
    put(&wanted, "%s -> %" PRId64 " %" PRId64, text_model.keys[i], text_model.values[i][0], text_model.values[i][1]);
    agrees = strcmp(text, wanted.bytes) == 0;
    free(text);
    free(wanted.bytes);
  }
  profile_model_free(&text_model);
  sn_profile_destroy(&profile);
  return agrees;
}

static void profile(void) {
  for (uint64_t seed = 0; seed < 3; seed++) EXPECT(profile_agrees(seed, false));
}

static void profile_notices(void) {
  EXPECT(!profile_agrees(1, true));
  text_model.broken = false;
}

int main(void) {
  test("the raw store agrees with its twin", raw_store);
  test("a broken twin of the raw store is noticed", raw_store_notices);
  test("a profile agrees with its twin", profile);
  test("a broken twin of the profile is noticed", profile_notices);
  return finish(__FILE__);
}
