/* raw_store: see raw_store.h. Called by the sampler (job, GVL events, VM hooks) with the GVL, and by the serialiser
 * after a flip; the recorder's slot lock keeps the two apart. Takes no lock itself, allocates by the C library only. */
#include "raw_store.h"

#include "hash.h"

/* What a reset keeps, beside the stack table: together about a megabyte. */
enum { KEEP_LOCATIONS = 8192, KEEP_ROWS = 2048, KEEP_SLOTS = 8192, KEEP_LOCATION_SLOTS = 16384 };

static const uint64_t OVERFLOW_FRAME = SN_FRAME_OVERFLOW;
static const uint64_t NATIVE_FRAME = SN_FRAME_NATIVE;
static const int32_t NO_LINE = 0;

/* Locations ------------------------------------------------------------------- */

static uint32_t location_count(const sn_raw_store *store) {
  return atomic_load_explicit(&store->location_count, memory_order_relaxed);
}

/* A new location is written first and counted last, because a GC mark function may walk the counted ones. */
static bool add_location(sn_raw_store *store, uint32_t hash, sn_raw_location location, uint32_t *id) {
  const uint32_t count = location_count(store);
  if (count == SN_NO_ID) return false;
  if (sn_hash_index_reserve(&store->location_index) != SN_OK) return false;
  if (sn_memory_grow(store->memory, (void **)&store->locations, &store->location_capacity, count + 1,
                     sizeof(*store->locations)) != SN_OK) {
    return false;
  }
  store->locations[count] = location;
  atomic_store_explicit(&store->location_count, count + 1, memory_order_release);
  sn_hash_index_put(&store->location_index, hash, count);
  *id = count;
  return true;
}

static bool intern_location(sn_raw_store *store, uint64_t frame, uint64_t aux, int32_t line, uint32_t *id) {
  const uint32_t hash = sn_hash_pair(frame + aux * SN_HASH_K1, (uint32_t)line);
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&store->location_index, hash, &cursor)) != SN_NO_ID) {
    const sn_raw_location *location = &store->locations[found];
    if (location->frame == frame && location->line == line && location->aux == aux) {
      *id = found;
      return true;
    }
  }
  return add_location(store, hash, (sn_raw_location){.frame = frame, .aux = aux, .line = line}, id);
}

/* Stacks ---------------------------------------------------------------------- */

static uint64_t aux_at(const uint64_t *aux, uint32_t i) {
  return aux == NULL ? 0 : aux[i];
}

/* aux is in the hash because a program may make a thousand methods of one block; zeros add nothing to it. */
static uint32_t hash_stack(const uint64_t *frames, const uint64_t *aux, const int32_t *lines, uint32_t n) {
  const uint32_t hash = sn_hash_frames(frames, lines, n);
  if (aux == NULL) return hash;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += aux[i] * (SN_HASH_K1 + 2 * (uint64_t)i);
  return hash ^ sn_hash_finish(sum);
}

static bool same_stack(const sn_raw_store *store, uint32_t id, const uint64_t *frames, const uint64_t *aux,
                       const int32_t *lines, uint32_t n) {
  uint32_t length;
  const uint32_t *ids = sn_stack_table_get(&store->stacks, id, &length);
  if (length != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    const sn_raw_location *location = &store->locations[ids[i]];
    if (location->frame != frames[i] || location->line != lines[i]) return false;
    if (location->aux != aux_at(aux, i)) return false;
  }
  return true;
}

/* The table's own index is not used: equal raw arrays and equal ids are the same thing. */
static bool add_stack(sn_raw_store *store, uint32_t hash, const uint64_t *frames, const uint64_t *aux,
                      const int32_t *lines, uint32_t n, uint32_t *id) {
  uint32_t *room;
  if (sn_hash_index_reserve(&store->raw_stack_index) != SN_OK) return false;
  if (sn_stack_table_reserve(&store->stacks, n, &room) != SN_OK) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (!intern_location(store, frames[i], aux_at(aux, i), lines[i], &room[i])) return false;
  }
  *id = sn_stack_table_push(&store->stacks, n);
  sn_hash_index_put(&store->raw_stack_index, hash, *id);
  return true;
}

static bool intern_stack(sn_raw_store *store, const uint64_t *frames, const uint64_t *aux, const int32_t *lines,
                         uint32_t n, uint32_t *id) {
  const uint32_t hash = hash_stack(frames, aux, lines, n);
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&store->raw_stack_index, hash, &cursor)) != SN_NO_ID) {
    if (SN_LIKELY(same_stack(store, found, frames, aux, lines, n))) {
      *id = found;
      return true;
    }
  }
  return add_stack(store, hash, frames, aux, lines, n, id);
}

uint32_t sn_raw_store_stack(sn_raw_store *store, const uint64_t *frames, const uint64_t *aux, const int32_t *lines,
                            uint32_t n) {
  uint32_t id;
  const bool kept = n == 0 ? intern_stack(store, &NATIVE_FRAME, NULL, &NO_LINE, 1, &id)
                           : intern_stack(store, frames, aux, lines, n, &id);
  if (SN_LIKELY(kept)) return id;
  store->overflowed_stacks++;
  return 0;
}

/* Rows ------------------------------------------------------------------------ */

static bool same_key(sn_row_key a, sn_row_key b) {
  return a.stack == b.stack && a.thread == b.thread && a.labels == b.labels && a.state == b.state &&
         a.detail == b.detail;
}

static sn_row *add_row(sn_raw_store *store, uint32_t hash, sn_row_key key) {
  if (store->row_count == SN_NO_ID) return NULL;
  if (sn_hash_index_reserve(&store->row_index) != SN_OK) return NULL;
  if (sn_memory_grow(store->memory, (void **)&store->rows, &store->row_capacity, store->row_count + 1,
                     sizeof(*store->rows)) != SN_OK) {
    return NULL;
  }
  sn_hash_index_put(&store->row_index, hash, store->row_count);
  sn_row *row = &store->rows[store->row_count++];
  *row = (sn_row){.key = key};
  return row;
}

static sn_row *intern_row(sn_raw_store *store, sn_row_key key) {
  const uint64_t rest = key.labels | (uint64_t)(key.state | key.detail << 4) << 32;
  const uint32_t hash = sn_hash_pair(key.stack | (uint64_t)key.thread << 32, rest);
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&store->row_index, hash, &cursor)) != SN_NO_ID) {
    if (SN_LIKELY(same_key(store->rows[id].key, key))) return &store->rows[id];
  }
  return add_row(store, hash, key);
}

sn_row *sn_raw_store_row(sn_raw_store *store, sn_row_key key) {
  sn_assert(key.stack < store->stacks.count && key.state < SN_STATE_COUNT);
  sn_row *row = intern_row(store, key);
  if (SN_LIKELY(row != NULL)) return row;
  store->overflowed_rows++;
  return &store->rows[0];
}

/* Life ------------------------------------------------------------------------ */

/* Stack 0 and row 0. Where storage for one of each was kept this cannot fail. */
static bool seed(sn_raw_store *store) {
  uint32_t stack;
  if (!intern_stack(store, &OVERFLOW_FRAME, NULL, &NO_LINE, 1, &stack)) return false;
  return intern_row(store, (sn_row_key){.stack = stack}) != NULL;
}

sn_status sn_raw_store_init(sn_raw_store *store, sn_memory *memory) {
  *store = (sn_raw_store){.memory = memory};
  atomic_init(&store->location_count, 0);
  sn_hash_index_init(&store->location_index, memory);
  sn_hash_index_init(&store->raw_stack_index, memory);
  sn_hash_index_init(&store->row_index, memory);
  sn_status status = sn_stack_table_init(&store->stacks, memory);
  if (status == SN_OK) status = sn_detail_table_init(&store->details, memory);
  if (status == SN_OK && seed(store)) return SN_OK;
  sn_raw_store_destroy(store);
  return SN_NO_MEMORY;
}

void sn_raw_store_destroy(sn_raw_store *store) {
  atomic_store_explicit(&store->location_count, 0, memory_order_relaxed);
  store->row_count = 0;
  sn_hash_index_destroy(&store->location_index);
  sn_hash_index_destroy(&store->raw_stack_index);
  sn_hash_index_destroy(&store->row_index);
  sn_stack_table_destroy(&store->stacks);
  sn_detail_table_destroy(&store->details);
  sn_memory_free(store->memory, store->locations, store->location_capacity * sizeof(*store->locations));
  sn_memory_free(store->memory, store->rows, store->row_capacity * sizeof(*store->rows));
  store->locations = NULL;
  store->rows = NULL;
  store->location_capacity = store->row_capacity = 0;
}

/* Whatever state a reset leaves when a fork copies it half done, a second reset repairs: counts go first, and
 * sn_memory_trim keeps pointer and capacity fitting. */
void sn_raw_store_reset(sn_raw_store *store) {
  atomic_store_explicit(&store->location_count, 0, memory_order_relaxed);
  store->row_count = 0;
  store->overflowed_stacks = store->overflowed_rows = 0;
  sn_hash_index_reset(&store->location_index, KEEP_LOCATION_SLOTS);
  sn_hash_index_reset(&store->raw_stack_index, KEEP_SLOTS);
  sn_hash_index_reset(&store->row_index, KEEP_SLOTS);
  sn_stack_table_reset(&store->stacks);
  sn_detail_table_reset(&store->details);
  sn_memory_trim(store->memory, (void **)&store->locations, &store->location_capacity, KEEP_LOCATIONS,
                 sizeof(*store->locations));
  sn_memory_trim(store->memory, (void **)&store->rows, &store->row_capacity, KEEP_ROWS, sizeof(*store->rows));
  const bool seeded = seed(store);
  sn_assert(seeded);
  (void)seeded;
}
