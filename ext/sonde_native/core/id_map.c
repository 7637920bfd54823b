/* id_map: see id_map.h. Called by the pprof reader, on the thread that reads; no locks. */
#include "id_map.h"

#include <string.h>

#include "hash.h"

void sn_id_map_init(sn_id_map *map, sn_memory *memory) {
  *map = (sn_id_map){.memory = memory};
  sn_hash_index_init(&map->index, memory);
}

static size_t dense_size(const sn_id_map *map) {
  return ((size_t)map->dense_last + 1) * sizeof(*map->dense);
}

void sn_id_map_destroy(sn_id_map *map) {
  sn_memory_free(map->memory, map->dense, dense_size(map));
  sn_memory_free(map->memory, map->pairs, map->pair_capacity * sizeof(*map->pairs));
  sn_hash_index_destroy(&map->index);
  sn_id_map_init(map, map->memory);
}

sn_status sn_id_map_expect(sn_id_map *map, uint32_t count) {
  sn_assert(map->dense == NULL && map->pair_count == 0);
  if (count >= UINT32_MAX / sizeof(*map->dense)) return SN_FULL;
  const size_t size = ((size_t)count + 1) * sizeof(*map->dense);
  map->dense = sn_memory_alloc(map->memory, size);
  if (map->dense == NULL) return sn_memory_failure(map->memory, size);
  map->dense_last = count;
  memset(map->dense, 0xff, size);
  return SN_OK;
}

uint32_t sn_id_map_find_sparse(const sn_id_map *map, uint64_t id) {
  const uint32_t hash = sn_hash_pair(id, 0);
  uint32_t cursor = hash, at;
  while ((at = sn_hash_index_next(&map->index, hash, &cursor)) != SN_NO_ID) {
    if (map->pairs[at].id == id) return map->pairs[at].value;
  }
  return SN_NO_ID;
}

sn_status sn_id_map_add(sn_id_map *map, uint64_t id, uint32_t value) {
  sn_assert(value != SN_NO_ID);
  if (sn_id_map_get(map, id) != SN_NO_ID) return SN_INVALID;
  if (map->dense != NULL && id <= map->dense_last) {
    map->dense[id] = value;
    return SN_OK;
  }
  if (map->pair_count == SN_NO_ID) return SN_FULL;
  sn_status status = sn_hash_index_reserve(&map->index);
  if (status != SN_OK) return status;
  status =
      sn_memory_grow(map->memory, (void **)&map->pairs, &map->pair_capacity, map->pair_count + 1, sizeof(*map->pairs));
  if (status != SN_OK) return status;
  map->pairs[map->pair_count] = (sn_id_pair){.id = id, .value = value};
  sn_hash_index_put(&map->index, sn_hash_pair(id, 0), map->pair_count++);
  return SN_OK;
}
