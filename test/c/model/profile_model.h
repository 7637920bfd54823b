/* The slow, obvious twin of a profile's samples: text for the stack, text for the labels, values; a linear array. */
#ifndef SONDE_TEST_PROFILE_MODEL_H
#define SONDE_TEST_PROFILE_MODEL_H

#include "profile_text.h"

enum { MODEL_SAMPLES = 4000, MODEL_TYPES = 2 };

typedef struct profile_model {
  char *keys[MODEL_SAMPLES];
  int64_t values[MODEL_SAMPLES][MODEL_TYPES];
  uint32_t count;
  bool broken; /* loses every hundredth addition to a known sample */
  uint32_t additions;
} profile_model;

static inline void profile_model_add(profile_model *model, const char *key, const int64_t *values) {
  uint32_t i = 0;
  while (i < model->count && strcmp(model->keys[i], key) != 0) i++;
  if (i == MODEL_SAMPLES) abort();
  if (i == model->count) {
    model->keys[i] = malloc(strlen(key) + 1);
    if (model->keys[i] == NULL) abort();
    strcpy(model->keys[i], key);
    memset(model->values[i], 0, sizeof(model->values[i]));
    model->count++;
  } else if (model->broken && ++model->additions % 100 == 0) {
    return;
  }
  for (uint32_t t = 0; t < MODEL_TYPES; t++) model->values[i][t] += values[t];
}

static inline void profile_model_free(profile_model *model) {
  for (uint32_t i = 0; i < model->count; i++) free(model->keys[i]);
  model->count = 0;
}

#endif
