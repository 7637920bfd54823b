/* The slow, obvious twin of the raw store: linear arrays, nothing is ever full. */
#ifndef SONDE_TEST_RAW_STORE_MODEL_H
#define SONDE_TEST_RAW_STORE_MODEL_H

#include "core/raw_store.h"
#include "harness.h"

enum { MODEL_DEPTH = 24, MODEL_STACKS = 4000, MODEL_ROWS = 8000 };

typedef struct model_stack {
  uint64_t frames[MODEL_DEPTH];
  int32_t lines[MODEL_DEPTH];
  uint32_t n;
} model_stack;

typedef struct raw_store_model {
  model_stack stacks[MODEL_STACKS];
  uint32_t stack_count;
  sn_row rows[MODEL_ROWS];
  uint32_t row_count;
  bool broken; /* forgets to compare the line of the last frame */
} raw_store_model;

static inline uint32_t model_stack_id(raw_store_model *model, const uint64_t *frames, const int32_t *lines,
                                      uint32_t n) {
  for (uint32_t i = 0; i < model->stack_count; i++) {
    const model_stack *stack = &model->stacks[i];
    bool same = stack->n == n;
    for (uint32_t k = 0; same && k < n; k++) {
      const bool look = !model->broken || k + 1 < n;
      same = stack->frames[k] == frames[k] && (!look || stack->lines[k] == lines[k]);
    }
    if (same) return i;
  }
  if (model->stack_count == MODEL_STACKS) abort();
  model_stack *added = &model->stacks[model->stack_count];
  added->n = n;
  memcpy(added->frames, frames, n * sizeof(*frames));
  memcpy(added->lines, lines, n * sizeof(*lines));
  return model->stack_count++;
}

static inline void model_add(raw_store_model *model, sn_row_key key, sn_column column, int64_t value) {
  uint32_t i = 0;
  for (; i < model->row_count; i++) {
    const sn_row_key *other = &model->rows[i].key;
    if (other->stack == key.stack && other->thread == key.thread && other->labels == key.labels &&
        other->state == key.state && other->detail == key.detail) {
      break;
    }
  }
  if (i == MODEL_ROWS) abort();
  if (i == model->row_count) model->rows[model->row_count++] = (sn_row){.key = key};
  model->rows[i].values[column] += value;
}

static inline void model_reset(raw_store_model *model) {
  model->stack_count = model->row_count = 0;
  model_stack_id(model, (uint64_t[]){SN_FRAME_OVERFLOW}, (int32_t[]){0}, 1);
  model_add(model, (sn_row_key){0}, SN_CPU_TIME, 0);
}

#endif
