/* raw_convert: see raw_convert.h. Called by the flush, on the serialiser's thread, which owns the store until it
 * releases the slot; no locks. */
#include "raw_convert.h"

#include <string.h>

#include "wide_math.h"

/* Spreads an exact total over weights. What was given away so far is always the rounded-down share of the weights seen
 * so far; so the shares add up to the total, to the nanosecond, and none is off by more than one. */
typedef struct calibration {
  bool known; /* no: the weights stand as they are */
  uint64_t total;
  uint64_t weights; /* sum of all */
  uint64_t seen;
  uint64_t given;
} calibration;

static int64_t take_share(calibration *from, uint64_t weight) {
  if (!from->known || weight == 0) return (int64_t)weight;
  const uint64_t left = from->weights - from->seen; /* a saturated sum ends early */
  from->seen += weight < left ? weight : left;
  const uint64_t given = sn_mul_div(from->total, from->seen, from->weights);
  const uint64_t share = given - from->given;
  from->given = given;
  return (int64_t)share;
}

/* A value that goes with weights of such a calibration. */
static int64_t scaled(const calibration *by, uint64_t value) {
  const double most = 9.0e18;
  if (!by->known || by->weights == 0) return (int64_t)value;
  const double result = (double)value * ((double)by->total / (double)by->weights) + 0.5;
  return result < most ? (int64_t)result : (int64_t)most;
}

typedef struct conversion {
  const sn_convert_input *input;
  sn_profile *out;
  calibration *threads;    /* one for each summary; owned */
  calibration unnamed_cpu; /* row 0 where thread 0 has no summary */
  calibration gc, debt, alloc;
  uint32_t *stacks; /* raw stack id -> stack id in out, or SN_NO_ID; owned */
  uint32_t *frames; /* room for the longest stack; owned */
  uint32_t longest;
  sn_row_key labels_of; /* the key that `labels` was made for: rows of one thread come in runs */
  uint32_t labels;
  uint32_t key_thread_id, key_thread_name, key_state;
} conversion;

const char *sn_thread_state_text(sn_thread_state state) {
  switch (state) {
    case SN_STATE_RUNNING:
      return "running";
    case SN_STATE_GVL_WAIT:
      return "gvl-wait";
    case SN_STATE_BLOCKED:
      return "blocked";
    case SN_STATE_NATIVE:
      return "native";
    case SN_STATE_NONE:
    case SN_STATE_COUNT:
      break;
  }
  return NULL;
}

static uint64_t weight_of(const sn_row *row, sn_column column) {
  return row->values[column] > 0 ? (uint64_t)row->values[column] : 0;
}

/* Position of a thread's summary, or thread_count. */
static uint32_t find_thread(const sn_convert_input *input, uint32_t number) {
  uint32_t low = 0, high = input->thread_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (input->threads[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < input->thread_count && input->threads[low].number == number ? low : input->thread_count;
}

/* Calibration ----------------------------------------------------------------- */

static void count_weights(conversion *c) {
  const sn_raw_store *store = c->input->store;
  for (uint32_t i = 0; i < store->row_count; i++) {
    const sn_row *row = &store->rows[i];
    const uint32_t thread = find_thread(c->input, row->key.thread);
    c->gc.weights = sn_add_saturating_unsigned(c->gc.weights, weight_of(row, SN_GC_TIME));
    c->debt.weights = sn_add_saturating_unsigned(c->debt.weights, weight_of(row, SN_GC_DEBT_TIME));
    c->alloc.weights = sn_add_saturating_unsigned(c->alloc.weights, weight_of(row, SN_ALLOC_SAMPLES));
    calibration *cpu = thread < c->input->thread_count ? &c->threads[thread] : i == 0 ? &c->unnamed_cpu : NULL;
    if (cpu == NULL) continue;
    cpu->weights = sn_add_saturating_unsigned(cpu->weights, weight_of(row, SN_CPU_TIME));
  }
}

/* Row 0 has weight of threads that nobody can name: it takes its part of the total from all of them. */
static void give_to_unnamed(conversion *c) {
  const uint64_t unnamed = c->unnamed_cpu.weights;
  uint64_t all = unnamed;
  bool any_known = false;
  for (uint32_t i = 0; i < c->input->thread_count; i++) {
    if (!c->threads[i].known) continue;
    any_known = true;
    all = sn_add_saturating_unsigned(all, c->threads[i].weights);
  }
  if (unnamed == 0 || !any_known) return;
  c->unnamed_cpu.known = true;
  for (uint32_t i = 0; i < c->input->thread_count; i++) {
    if (!c->threads[i].known) continue;
    const uint64_t part = sn_mul_div(c->threads[i].total, unnamed, all);
    c->threads[i].total -= part;
    c->unnamed_cpu.total = sn_add_saturating_unsigned(c->unnamed_cpu.total, part);
  }
}

static calibration calibration_to(int64_t total) {
  return (calibration){.known = total >= 0, .total = total > 0 ? (uint64_t)total : 0};
}

static void calibrate(conversion *c) {
  const sn_convert_input *input = c->input;
  for (uint32_t i = 0; i < input->thread_count; i++) {
    c->threads[i] = calibration_to(input->threads[i].cpu_time);
  }
  c->gc = calibration_to(input->gc_time);
  c->debt = calibration_to(input->gc_time);
  c->alloc = calibration_to(input->alloc_total > 0 ? input->alloc_total : -1);
  count_weights(c);
  give_to_unnamed(c);
}

/* Names ----------------------------------------------------------------------- */

static sn_status text(sn_profile *out, const char *bytes, uint32_t *id) {
  return sn_profile_string(out, bytes, strlen(bytes), id);
}

static sn_status add_types(conversion *c) {
  uint32_t position;
  for (uint32_t i = 0; i < SN_COLUMN_COUNT; i++) {
    if (!(c->input->columns >> i & 1)) continue;
    const sn_status status = sn_profile_add_type(c->out, sn_column_names[i].type, sn_column_names[i].unit, &position);
    if (status != SN_OK) return status;
  }
  if (c->out->type_count == 0) return SN_INVALID;
  const int preferred = sn_profile_find_type(c->out, sn_column_names[sn_column_preferred(c->input->columns)].type);
  c->out->default_type = c->out->types[preferred < 0 ? 0 : preferred].type;
  return SN_OK;
}

static sn_status add_label_keys(conversion *c) {
  sn_status status = text(c->out, "thread id", &c->key_thread_id);
  if (status == SN_OK) status = text(c->out, "thread name", &c->key_thread_name);
  if (status == SN_OK) status = text(c->out, "state", &c->key_state);
  return status;
}

static sn_status add_label(sn_profile *out, sn_label *labels, uint32_t *n, uint32_t key, const char *bytes,
                           size_t length) {
  if (bytes == NULL || length == 0) return SN_OK;
  labels[*n] = (sn_label){.key = key};
  const sn_status status = sn_profile_string(out, bytes, length, &labels[*n].str);
  if (status == SN_OK) ++*n;
  return status;
}

/* The row's own labels first: of two with one key the last wins, and the thread is what it is. */
static sn_status make_labels(conversion *c, sn_row_key key, uint32_t *id) {
  sn_label labels[SN_LABEL_SET_MAX + 5];
  uint32_t n = 0;
  sn_status status = SN_OK;
  if (key.labels != 0 && c->input->label_sets != NULL && key.labels < c->input->label_set_count) {
    const uint32_t set = c->input->label_sets[key.labels];
    if (set >= c->out->labels.count) return SN_INVALID;
    const sn_label *own = sn_label_sets_get(&c->out->labels, set, &n);
    if (n > 0) memcpy(labels, own, n * sizeof(*labels));
  }
  const uint32_t thread = find_thread(c->input, key.thread);
  if (thread < c->input->thread_count) {
    const sn_thread_summary *summary = &c->input->threads[thread];
    status = add_label(c->out, labels, &n, c->key_thread_id, summary->id, summary->id_length);
    if (status != SN_OK) return status;
    status = add_label(c->out, labels, &n, c->key_thread_name, summary->name, summary->name_length);
  }
  const char *state = sn_thread_state_text((sn_thread_state)key.state);
  if (status == SN_OK && state != NULL) {
    status = add_label(c->out, labels, &n, c->key_state, state, strlen(state));
  }
  if (c->input->details != NULL) {
    const sn_detail_labels *detail = &c->input->details[key.detail];
    for (uint32_t i = 0; i < detail->count; i++) labels[n++] = detail->labels[i];
  }
  return status != SN_OK ? status : sn_profile_labels(c->out, labels, n, id);
}

static sn_status labels_for(conversion *c, sn_row_key key, uint32_t *id) {
  const sn_row_key *last = &c->labels_of;
  if (c->labels == SN_NO_ID || last->thread != key.thread || last->labels != key.labels || last->state != key.state ||
      last->detail != key.detail) {
    const sn_status status = make_labels(c, key, &c->labels);
    if (status != SN_OK) return status;
    c->labels_of = key;
  }
  *id = c->labels;
  return SN_OK;
}

static sn_status stack_for(conversion *c, uint32_t raw, uint32_t *id) {
  if (raw >= c->input->store->stacks.count) return SN_INVALID;
  if (c->stacks[raw] == SN_NO_ID) {
    uint32_t n;
    const uint32_t *ids = sn_stack_table_get(&c->input->store->stacks, raw, &n);
    for (uint32_t i = 0; i < n; i++) c->frames[i] = c->input->locations[ids[i]];
    const sn_status status = sn_profile_stack(c->out, c->frames, n, &c->stacks[raw]);
    if (status != SN_OK) return status;
  }
  *id = c->stacks[raw];
  return SN_OK;
}

/* Samples --------------------------------------------------------------------- */

static sn_status add_sample(conversion *c, sn_row_key key, const int64_t *all) {
  int64_t values[SN_COLUMN_COUNT];
  uint32_t n = 0, stack, labels;
  bool something = false;
  for (uint32_t i = 0; i < SN_COLUMN_COUNT; i++) {
    if (!(c->input->columns >> i & 1)) continue;
    something |= all[i] > 0;
    values[n++] = all[i] > 0 ? all[i] : 0;
  }
  if (!something) return SN_OK;
  sn_status status = stack_for(c, key.stack, &stack);
  if (status == SN_OK) status = labels_for(c, key, &labels);
  return status != SN_OK ? status : sn_profile_add_sample(c->out, stack, labels, values);
}

static sn_status add_rows(conversion *c) {
  const sn_raw_store *store = c->input->store;
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < store->row_count && status == SN_OK; i++) {
    const sn_row *row = &store->rows[i];
    int64_t values[SN_COLUMN_COUNT];
    memcpy(values, row->values, sizeof(values));
    const uint32_t thread = find_thread(c->input, row->key.thread);
    calibration *cpu = thread < c->input->thread_count ? &c->threads[thread] : i == 0 ? &c->unnamed_cpu : NULL;
    if (cpu != NULL) values[SN_CPU_TIME] = take_share(cpu, weight_of(row, SN_CPU_TIME));
    values[SN_GC_TIME] = take_share(&c->gc, weight_of(row, SN_GC_TIME));
    values[SN_GC_DEBT_TIME] = take_share(&c->debt, weight_of(row, SN_GC_DEBT_TIME));
    values[SN_ALLOC_SIZE] = scaled(&c->alloc, weight_of(row, SN_ALLOC_SIZE));
    values[SN_ALLOC_SAMPLES] = take_share(&c->alloc, weight_of(row, SN_ALLOC_SAMPLES));
    status = add_sample(c, row->key, values);
  }
  return status;
}

/* CPU time of threads that were never seen burning any. */
static sn_status add_fallbacks(conversion *c) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < c->input->thread_count && status == SN_OK; i++) {
    const calibration *cpu = &c->threads[i];
    if (!cpu->known || cpu->weights != 0 || cpu->total == 0) continue;
    const int64_t values[SN_COLUMN_COUNT] = {[SN_CPU_TIME] = (int64_t)cpu->total};
    const sn_thread_summary *summary = &c->input->threads[i];
    const sn_row_key key = {
        .stack = summary->fallback_stack, .thread = summary->number, .labels = summary->fallback_labels};
    status = add_sample(c, key, values);
  }
  return status;
}

/* Life ------------------------------------------------------------------------ */

static sn_status allocate(sn_memory *memory, void **block, size_t count, size_t size) {
  if (count > SIZE_MAX / size) return SN_FULL;
  *block = sn_memory_alloc(memory, count * size);
  return *block != NULL ? SN_OK : sn_memory_failure(memory, count * size);
}

static sn_status allocate_scratch(conversion *c) {
  sn_memory *memory = &c->out->memory;
  const sn_stack_table *stacks = &c->input->store->stacks;
  void *threads = NULL, *ids = NULL, *frames = NULL;
  c->longest = 1;
  for (uint32_t i = 0; i < stacks->count; i++) {
    if (stacks->stacks[i].length > c->longest) c->longest = stacks->stacks[i].length;
  }
  sn_status status = allocate(memory, &threads, (size_t)c->input->thread_count + 1, sizeof(*c->threads));
  if (status == SN_OK) status = allocate(memory, &ids, stacks->count, sizeof(*c->stacks));
  if (status == SN_OK) status = allocate(memory, &frames, c->longest, sizeof(*c->frames));
  c->threads = threads;
  c->stacks = ids;
  c->frames = frames;
  if (status == SN_OK) memset(c->stacks, 0xff, stacks->count * sizeof(*c->stacks));
  return status;
}

static void free_scratch(conversion *c) {
  sn_memory *memory = &c->out->memory;
  sn_memory_free(memory, c->threads, ((size_t)c->input->thread_count + 1) * sizeof(*c->threads));
  sn_memory_free(memory, c->stacks, c->input->store->stacks.count * sizeof(*c->stacks));
  sn_memory_free(memory, c->frames, c->longest * sizeof(*c->frames));
}

sn_status sn_raw_convert(const sn_convert_input *input, sn_profile *out) {
  conversion c = {.input = input, .out = out, .labels = SN_NO_ID};
  sn_status status = allocate_scratch(&c);
  if (status == SN_OK) status = add_types(&c);
  if (status == SN_OK) status = add_label_keys(&c);
  if (status == SN_OK) {
    calibrate(&c);
    status = add_rows(&c);
  }
  if (status == SN_OK) status = add_fallbacks(&c);
  free_scratch(&c);
  return status;
}
