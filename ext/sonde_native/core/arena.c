/* arena: see arena.h. Called by the string table, on the thread that owns it; no locks. */
#include "arena.h"

#ifdef SONDE_TESTING
enum { FIRST_CHUNK = 64, LAST_CHUNK = 4096 };
#else
enum { FIRST_CHUNK = 4096, LAST_CHUNK = 256 * 1024 };
#endif

struct sn_arena_chunk {
  sn_arena_chunk *next;
  size_t size; /* with this header */
};

void sn_arena_init(sn_arena *arena, sn_memory *memory) {
  *arena = (sn_arena){.memory = memory, .next_size = FIRST_CHUNK};
}

void sn_arena_destroy(sn_arena *arena) {
  for (sn_arena_chunk *chunk = arena->chunks; chunk != NULL;) {
    sn_arena_chunk *next = chunk->next;
    sn_memory_free(arena->memory, chunk, chunk->size);
    chunk = next;
  }
  sn_arena_init(arena, arena->memory);
}

static sn_status add_chunk(sn_arena *arena, size_t payload) {
  if (payload > SIZE_MAX - sizeof(sn_arena_chunk)) return SN_FULL;
  const size_t size = payload + sizeof(sn_arena_chunk);
  sn_arena_chunk *chunk = sn_memory_alloc(arena->memory, size);
  if (chunk == NULL) return sn_memory_failure(arena->memory, size);
  *chunk = (sn_arena_chunk){.next = arena->chunks, .size = size};
  arena->chunks = chunk;
  arena->free = (char *)(chunk + 1);
  arena->left = payload;
  if (arena->next_size < LAST_CHUNK) arena->next_size *= 2;
  return SN_OK;
}

static sn_status make_room(sn_arena *arena, size_t size) {
  if (size <= arena->left) return SN_OK;
  if (size >= arena->next_size) return add_chunk(arena, size);
  const sn_status status = add_chunk(arena, arena->next_size);
  return status == SN_FULL ? add_chunk(arena, size) : status; /* near the limit: no more than is asked for */
}

sn_status sn_arena_alloc(sn_arena *arena, size_t size, char **bytes) {
  const sn_status status = make_room(arena, size);
  if (status != SN_OK) return status;
  *bytes = arena->free;
  arena->free += size;
  arena->left -= size;
  return SN_OK;
}
