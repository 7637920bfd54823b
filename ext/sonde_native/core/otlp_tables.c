/* otlp_tables: see otlp_tables.h. Called by otlp_writer.c, on the thread that reports, without the GVL; no locks. */
#include "otlp_tables.h"

#include <string.h>

#include "hash.h"

static const char FRAME_TYPE[] = "profile.frame.type", RUBY[] = "ruby", NATIVE[] = "native";
static const char COMMENT[] = "pprof.profile.comment";

/* Life ------------------------------------------------------------------------ */

static sn_status map_init(sn_otlp_map *map, uint32_t size, sn_memory *memory) {
  const size_t bytes = ((size_t)size + 1) * sizeof(uint32_t);
  map->size = size;
  map->index = sn_memory_alloc(memory, bytes);
  map->order = sn_memory_alloc(memory, bytes);
  if (map->index == NULL || map->order == NULL) return sn_memory_failure(memory, bytes);
  memset(map->index, 0, bytes);
  return SN_OK;
}

static void map_destroy(sn_otlp_map *map, sn_memory *memory) {
  const size_t bytes = ((size_t)map->size + 1) * sizeof(uint32_t);
  if (map->index != NULL) sn_memory_free(memory, map->index, bytes);
  if (map->order != NULL) sn_memory_free(memory, map->order, bytes);
}

sn_status sn_otlp_tables_init(sn_otlp_tables *t, const sn_profile *profile, sn_memory *memory) {
  *t = (sn_otlp_tables){.profile = profile, .memory = memory, .label_sets = profile->labels.count};
  sn_hash_index_init(&t->attribute_index, memory);
  sn_hash_index_init(&t->link_index, memory);
  t->strings.memory = t->strings.arena.memory = t->strings.index.memory = memory;
  sn_status status = sn_string_table_init(&t->strings, memory);
  if (status == SN_OK) status = map_init(&t->stacks, profile->stacks.count, memory);
  if (status == SN_OK) status = map_init(&t->locations, profile->location_count, memory);
  if (status == SN_OK) status = map_init(&t->functions, profile->function_count, memory);
  if (status != SN_OK) return status;
  const size_t bytes = (size_t)t->label_sets * sizeof(*t->labels);
  t->labels = sn_memory_alloc(memory, bytes);
  if (t->labels == NULL) return sn_memory_failure(memory, bytes);
  memset(t->labels, 0, bytes);
  return SN_OK;
}

void sn_otlp_tables_destroy(sn_otlp_tables *t) {
  sn_memory *memory = t->memory;
  sn_string_table_destroy(&t->strings);
  map_destroy(&t->stacks, memory);
  map_destroy(&t->locations, memory);
  map_destroy(&t->functions, memory);
  sn_hash_index_destroy(&t->attribute_index);
  sn_hash_index_destroy(&t->link_index);
  sn_memory_free(memory, t->attributes, t->attribute_capacity * sizeof(*t->attributes));
  sn_memory_free(memory, t->links, t->link_capacity * sizeof(*t->links));
  if (t->labels != NULL) sn_memory_free(memory, t->labels, (size_t)t->label_sets * sizeof(*t->labels));
  sn_memory_free(memory, t->attribute_refs, t->ref_capacity * sizeof(*t->attribute_refs));
}

/* Strings --------------------------------------------------------------------- */

sn_status sn_otlp_use_string(sn_otlp_tables *t, uint32_t id, uint32_t *index) {
  size_t length;
  const char *bytes = sn_string_table_get(&t->profile->strings, id, &length);
  return sn_string_table_intern(&t->strings, bytes, length, index);
}

/* Attributes ------------------------------------------------------------------ */

static bool same_value(const sn_otlp_value *a, const sn_otlp_value *b) {
  if (a->key != b->key || a->unit != b->unit || a->kind != b->kind || a->number != b->number) return false;
  return a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static sn_status use_attribute(sn_otlp_tables *t, sn_otlp_value value, uint32_t *index) {
  const uint32_t text = value.length > 0 ? sn_hash_bytes(value.text, value.length) : 0;
  const uint32_t hash = sn_hash_pair(value.key | (uint64_t)text << 32, (uint64_t)value.number + value.kind);
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&t->attribute_index, hash, &cursor)) != SN_NO_ID) {
    if (!same_value(&t->attributes[found], &value)) continue;
    *index = found + 1;
    return SN_OK;
  }
  sn_status status = sn_hash_index_reserve(&t->attribute_index);
  if (status == SN_OK) {
    status = sn_memory_grow(t->memory, (void **)&t->attributes, &t->attribute_capacity, t->attribute_count + 1,
                            sizeof(*t->attributes));
  }
  if (status != SN_OK) return status;
  sn_hash_index_put(&t->attribute_index, hash, t->attribute_count);
  t->attributes[t->attribute_count++] = value;
  *index = t->attribute_count;
  return SN_OK;
}

static sn_status use_literal(sn_otlp_tables *t, const char *key, sn_otlp_kind kind, const char *text, uint32_t *index) {
  if (*index != 0) return SN_OK;
  sn_otlp_value value = {.kind = kind, .text = text, .length = text == NULL ? 0 : strlen(text)};
  const sn_status status = sn_string_table_intern(&t->strings, key, strlen(key), &value.key);
  return status == SN_OK ? use_attribute(t, value, index) : status;
}

sn_status sn_otlp_use_comments(sn_otlp_tables *t) {
  return t->profile->comment_count == 0 ? SN_OK : use_literal(t, COMMENT, SN_OTLP_COMMENTS, NULL, &t->comments);
}

/* Frames ---------------------------------------------------------------------- */

static bool is_native(const sn_otlp_tables *t, const sn_function *function) {
  static const char C_FUNCTION[] = "<cfunc>";
  size_t length;
  const char *file = sn_string_table_get(&t->profile->strings, function->filename, &length);
  return length == sizeof(C_FUNCTION) - 1 && memcmp(file, C_FUNCTION, length) == 0;
}

uint32_t sn_otlp_frame_type(const sn_otlp_tables *t, const sn_function *function) {
  if (function->filename == 0) return 0;
  return is_native(t, function) ? t->native : t->ruby;
}

static bool add(sn_otlp_map *map, uint32_t id) {
  if (map->index[id] != 0) return false;
  map->order[map->count++] = id;
  map->index[id] = map->count;
  return true;
}

static sn_status use_function(sn_otlp_tables *t, uint32_t id) {
  if (!add(&t->functions, id)) return SN_OK;
  const sn_function *function = &t->profile->functions[id];
  uint32_t index;
  sn_status status = sn_otlp_use_string(t, function->name, &index);
  if (status == SN_OK) status = sn_otlp_use_string(t, function->filename, &index);
  if (status != SN_OK || function->filename == 0) return status;
  return is_native(t, function) ? use_literal(t, FRAME_TYPE, SN_OTLP_TEXT, NATIVE, &t->native)
                                : use_literal(t, FRAME_TYPE, SN_OTLP_TEXT, RUBY, &t->ruby);
}

sn_status sn_otlp_use_stack(sn_otlp_tables *t, uint32_t stack) {
  uint32_t depth;
  const uint32_t *locations = sn_stack_table_get(&t->profile->stacks, stack, &depth);
  if (depth == 0 || !add(&t->stacks, stack)) return SN_OK; /* the empty stack is index 0 */
  for (uint32_t i = 0; i < depth; i++) {
    if (!add(&t->locations, locations[i])) continue;
    const sn_status status = use_function(t, t->profile->locations[locations[i]].function);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

/* Labels ---------------------------------------------------------------------- */

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/* Exactly `size` bytes in hexadecimal digits, not all of them zero. */
static bool parse_hex(const char *text, size_t length, uint8_t *bytes, size_t size) {
  uint8_t any = 0;
  if (length != 2 * size) return false;
  for (size_t i = 0; i < size; i++) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = (uint8_t)(high << 4 | low);
    any |= bytes[i];
  }
  return any != 0;
}

static bool parse_decimal(const char *text, size_t length, int64_t *number) {
  *number = 0;
  if (length == 0 || length > 18) return false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    *number = *number * 10 + (text[i] - '0');
  }
  return true;
}

static bool key_is(const sn_otlp_tables *t, const sn_label *label, const char *key) {
  size_t length;
  const char *bytes = sn_string_table_get(&t->profile->strings, label->key, &length);
  return length == strlen(key) && memcmp(bytes, key, length) == 0;
}

static bool trace_id_of(const sn_otlp_tables *t, const sn_label *label, sn_otlp_link *link) {
  size_t length;
  if (label->str == 0 || !key_is(t, label, "trace_id")) return false;
  const char *text = sn_string_table_get(&t->profile->strings, label->str, &length);
  return parse_hex(text, length, link->trace_id, sizeof(link->trace_id));
}

static bool span_id_of(const sn_otlp_tables *t, const sn_label *label, sn_otlp_link *link) {
  size_t length;
  if (!key_is(t, label, "span_id")) return false;
  if (label->str == 0) {
    for (int i = 0; i < 8; i++) link->span_id[i] = (uint8_t)((uint64_t)label->num >> (56 - 8 * i));
    return label->num != 0;
  }
  const char *text = sn_string_table_get(&t->profile->strings, label->str, &length);
  return parse_hex(text, length, link->span_id, sizeof(link->span_id));
}

static sn_status use_link(sn_otlp_tables *t, const sn_otlp_link *link, uint32_t *index) {
  const uint32_t hash = sn_hash_bytes(link, sizeof(*link));
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&t->link_index, hash, &cursor)) != SN_NO_ID) {
    if (memcmp(&t->links[found], link, sizeof(*link)) != 0) continue;
    *index = found + 1;
    return SN_OK;
  }
  sn_status status = sn_hash_index_reserve(&t->link_index);
  if (status == SN_OK) {
    status = sn_memory_grow(t->memory, (void **)&t->links, &t->link_capacity, t->link_count + 1, sizeof(*t->links));
  }
  if (status != SN_OK) return status;
  sn_hash_index_put(&t->link_index, hash, t->link_count);
  t->links[t->link_count++] = *link;
  *index = t->link_count;
  return SN_OK;
}

static sn_status use_label(sn_otlp_tables *t, const sn_label *label, uint32_t *index) {
  sn_otlp_value value = {.kind = label->str == 0 ? SN_OTLP_INT : SN_OTLP_TEXT, .number = label->num};
  sn_status status = sn_otlp_use_string(t, label->key, &value.key);
  if (status == SN_OK) status = sn_otlp_use_string(t, label->num_unit, &value.unit);
  if (status != SN_OK) return status;
  if (label->str != 0) {
    value.number = 0;
    value.text = sn_string_table_get(&t->profile->strings, label->str, &value.length);
    if (key_is(t, label, "thread.id") && parse_decimal(value.text, value.length, &value.number)) {
      value.kind = SN_OTLP_INT;
      value.text = NULL;
      value.length = 0;
    } else {
      value.number = 0;
    }
  }
  return use_attribute(t, value, index);
}

static sn_status push_ref(sn_otlp_tables *t, uint32_t index) {
  const sn_status status = sn_memory_grow(t->memory, (void **)&t->attribute_refs, &t->ref_capacity, t->ref_count + 1,
                                          sizeof(*t->attribute_refs));
  if (status == SN_OK) t->attribute_refs[t->ref_count++] = index;
  return status;
}

sn_status sn_otlp_use_labels(sn_otlp_tables *t, uint32_t set) {
  sn_otlp_labels *labels = &t->labels[set];
  if (labels->known) return SN_OK;
  uint32_t n;
  const sn_label *all = sn_label_sets_get(&t->profile->labels, set, &n);
  sn_otlp_link link;
  bool trace = false, span = false;
  for (uint32_t i = 0; i < n; i++) {
    trace = trace || trace_id_of(t, &all[i], &link);
    span = span || span_id_of(t, &all[i], &link);
  }
  const bool linked = trace && span;
  sn_status status = linked ? use_link(t, &link, &labels->link) : SN_OK;
  labels->offset = t->ref_count;
  for (uint32_t i = 0; i < n && status == SN_OK; i++) {
    uint32_t index;
    if (linked && (key_is(t, &all[i], "trace_id") || key_is(t, &all[i], "span_id"))) continue;
    status = use_label(t, &all[i], &index);
    if (status == SN_OK) status = push_ref(t, index);
  }
  labels->length = t->ref_count - labels->offset;
  labels->known = true;
  return status;
}
