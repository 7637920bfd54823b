/* id_map: ids as a file chose them (any 64-bit numbers, usually 1..n) -> u32. A plain array for 1..n, an index for
 * others.
 *
 * Threads: none inside; one owner at a time. Contexts: gvl, nogvl. Not signal.
 */
#ifndef SONDE_CORE_ID_MAP_H
#define SONDE_CORE_ID_MAP_H

#include "base.h"
#include "hash_index.h"
#include "memory.h"
#include "status.h"

typedef struct sn_id_pair {
  uint64_t id;
  uint32_t value;
} sn_id_pair;

typedef struct sn_id_map {
  sn_memory *memory; /* borrowed */
  uint32_t *dense;   /* dense[id] for id <= dense_last; SN_NO_ID: none */
  uint32_t dense_last;
  sn_hash_index index; /* hash of id -> position in pairs */
  sn_id_pair *pairs;
  uint32_t pair_count, pair_capacity;
} sn_id_map;

/* Allocates nothing. */
void sn_id_map_init(sn_id_map *map, sn_memory *memory);
void sn_id_map_destroy(sn_id_map *map);

/* How many ids there will be: those up to this number get the array. Once, before the first add. */
SN_MUST_USE sn_status sn_id_map_expect(sn_id_map *map, uint32_t count);
/* SN_INVALID if the id is there already. value is not SN_NO_ID. */
SN_MUST_USE sn_status sn_id_map_add(sn_id_map *map, uint64_t id, uint32_t value);

uint32_t sn_id_map_find_sparse(const sn_id_map *map, uint64_t id);

/* SN_NO_ID if it is not there. */
static inline uint32_t sn_id_map_get(const sn_id_map *map, uint64_t id) {
  if (SN_LIKELY(id <= map->dense_last && map->dense != NULL)) return map->dense[id];
  return sn_id_map_find_sparse(map, id);
}

#endif
