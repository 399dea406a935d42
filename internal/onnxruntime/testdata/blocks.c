// Four threads allocate and free blocks of random sizes, fill them and check that no other block or page
// that was returned to the system changed them.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../blocks_linux.h"

#define CHECK(condition) \
  if (!(condition)) { fprintf(stderr, "line %d: %s\n", __LINE__, #condition); exit(1); }

#define BLOCKS 12

struct block { unsigned char *at; size_t size; unsigned char value; };

static void drop(struct block *b) {
  for (size_t i = 0; b->at && i < b->size; i++) CHECK(b->at[i] == b->value)
  if (b->at) CHECK(blocks_free(b->at))
  b->at = NULL;
}

static void *work(void *seed) {
  unsigned random = *(unsigned *)seed;
  struct block own[BLOCKS] = {0};
  for (int step = 0; step < 150; step++) {
    struct block *b = &own[rand_r(&random) % BLOCKS];
    drop(b);
    b->size = (64 << 10) + rand_r(&random) % (rand_r(&random) % 8 ? 1 << 20 : 9 << 20);
    CHECK((b->at = blocks_alloc(b->size)))
    CHECK((uintptr_t)b->at % (64 << 10) == 0)
    memset(b->at, b->value = rand_r(&random), b->size);
    struct blocks_counts now = blocks_count();
    CHECK(now.used <= now.resident && now.resident <= now.peak)
    if (rand_r(&random) % 50 == 0) blocks_trim();
  }
  for (int i = 0; i < BLOCKS; i++) drop(&own[i]);
  return NULL;
}

static long resident(void) {
  long size, pages;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%ld %ld", &size, &pages) == 2)
  fclose(f);
  return pages * 4096;
}

int main(int argc, char **argv) {
  if (argc > 1) { // with limited addresses
    struct rlimit limit = {1 << 30, 1 << 30};
    CHECK(!setrlimit(RLIMIT_AS, &limit) && blocks_alloc(100 << 20) && !blocks_alloc(200 << 20))
    return 0;
  }
  CHECK(!blocks_alloc(1000) && !blocks_alloc(SIZE_MAX) && !blocks_alloc(SIZE_MAX / 4))
  pthread_t threads[4];
  unsigned seeds[4] = {1, 2, 3, 4};
  for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, work, &seeds[i]))
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK(blocks_count().used == 0)

  // The memory of a freed block serves a larger block and a smaller one, then goes back to the system.
  const size_t size = 64 << 20;
  blocks_trim();
  long before = resident();
  struct block b = {blocks_alloc(size), size, 1};
  memset(b.at, b.value, size);
  drop(&b);
  CHECK(resident() > before + (long)size / 2)
  CHECK(blocks_count().resident * BLOCKS_PAGE >= size)
  size_t pages = blocks_count().resident;
  void *first = blocks_alloc(size / 4), *second = blocks_alloc(size / 2);
  CHECK(blocks_count().resident == pages)
  CHECK(blocks_free(first) && blocks_free(second))
  blocks_trim();
  CHECK(blocks_count().resident == 0 && resident() < before + (long)size / 2)
  int other;
  CHECK(!blocks_free(&other))
  return 0;
}
