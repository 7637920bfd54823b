/* otlp_tables: the dictionary of an OTLP request while it is made: what is used gets an index, in the order of its
 * first use; index 0 of every table is its zero value. Used by otlp_writer.c only.
 *
 * Contexts: nogvl, gvl. Memory: on the account given; destroy frees it, also after a failure.
 */
#ifndef SONDE_CORE_OTLP_TABLES_H
#define SONDE_CORE_OTLP_TABLES_H

#include "profile.h"

/* Index of the source -> index in the table (0: not used), and the way back. */
typedef struct sn_otlp_map {
  uint32_t *index; /* owned, one for each element of the source */
  uint32_t *order; /* owned; order[i] is the source's element at index i + 1 */
  uint32_t size, count;
} sn_otlp_map;

typedef enum sn_otlp_kind { SN_OTLP_TEXT, SN_OTLP_INT, SN_OTLP_COMMENTS } sn_otlp_kind;

typedef struct sn_otlp_value {
  uint32_t key, unit; /* string indices of the dictionary */
  sn_otlp_kind kind;
  const char *text; /* borrowed */
  size_t length;
  int64_t number;
} sn_otlp_value;

typedef struct sn_otlp_link {
  uint8_t trace_id[16], span_id[8];
} sn_otlp_link;

/* Of one label set of the source. */
typedef struct sn_otlp_labels {
  uint32_t offset, length; /* into attribute_refs */
  uint32_t link;
  bool known;
} sn_otlp_labels;

typedef struct sn_otlp_tables {
  const sn_profile *profile; /* borrowed */
  sn_memory *memory;         /* borrowed */
  sn_string_table strings;
  sn_otlp_map stacks, locations, functions;
  sn_otlp_value *attributes; /* [0] is at index 1 */
  uint32_t attribute_count, attribute_capacity;
  sn_hash_index attribute_index;
  sn_otlp_link *links; /* [0] is at index 1 */
  uint32_t link_count, link_capacity;
  sn_hash_index link_index;
  sn_otlp_labels *labels; /* one for each label set of the source */
  uint32_t label_sets;
  uint32_t *attribute_refs;
  uint32_t ref_count, ref_capacity;
  uint32_t ruby, native; /* attributes of locations; 0: not used yet */
  uint32_t comments;     /* attribute; 0: there are none */
} sn_otlp_tables;

SN_MUST_USE sn_status sn_otlp_tables_init(sn_otlp_tables *t, const sn_profile *profile, sn_memory *memory);
void sn_otlp_tables_destroy(sn_otlp_tables *t);

/* Enters a stack with all its locations and functions, or the labels of a set. */
SN_MUST_USE sn_status sn_otlp_use_stack(sn_otlp_tables *t, uint32_t stack);
SN_MUST_USE sn_status sn_otlp_use_labels(sn_otlp_tables *t, uint32_t set);
SN_MUST_USE sn_status sn_otlp_use_comments(sn_otlp_tables *t);
/* The index of a string of the profile. */
SN_MUST_USE sn_status sn_otlp_use_string(sn_otlp_tables *t, uint32_t id, uint32_t *index);

/* The attribute that marks a function's kind; 0: none. */
uint32_t sn_otlp_frame_type(const sn_otlp_tables *t, const sn_function *function);

#endif
