// malloc maps a large block anew each time, and the kernel clears it in pages of 4 KiB: a tenth of the time of
// a training step on a large bag, and a third of a prediction. Here, large blocks are ranges of one reserved
// region in huge pages. Pages of freed blocks stay for later blocks of any size. They are never more than
// were used at once, so reuse does not increase the peak of the memory.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "blocks_linux.h"

#define UNIT ((size_t)64 << 10) // sizes of blocks are multiples of it
#define UNITS_IN_PAGE (BLOCKS_PAGE / UNIT)
#define OVERRUN 64 // onnxruntime reads up to so many bytes after a block

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *_Atomic region; // NULL: not reserved
static size_t units;         // in the region
static size_t writable;      // the first so many units
static uint32_t *length;     // of the block that begins at a unit; 0: none
static struct page { uint8_t used, resident; } *pages; // number of used units; whether the page has memory
static struct blocks_counts count;

static void *map(size_t size, int access) {
  void *at = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

// reserve reserves addresses, twice as many as the machine has memory, because free ranges lie between
// blocks, but at most a quarter of those that the process may have.
static void reserve(void) {
  size_t size = (size_t)sysconf(_SC_PHYS_PAGES) * 2 * (size_t)sysconf(_SC_PAGESIZE);
  struct rlimit limit;
  if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur / 4 < size) size = limit.rlim_cur / 4;
  size_t n = size / BLOCKS_PAGE;
  char *at = map((n + 1) * BLOCKS_PAGE, PROT_NONE);
  length = map(n * UNITS_IN_PAGE * sizeof *length, PROT_READ | PROT_WRITE);
  pages = map(n * sizeof *pages, PROT_READ | PROT_WRITE);
  if (!at || !length || !pages) return;
  units = n * UNITS_IN_PAGE;
  region = at + (BLOCKS_PAGE - (uintptr_t)at % BLOCKS_PAGE) % BLOCKS_PAGE;
}

// find returns the first free range of n units, or the number of units if there is none.
static size_t find(size_t n) {
  for (size_t i = 0, run = 0; i < units; i += length[i] ? length[i] : 1) {
    run = length[i] ? 0 : run + 1;
    if (run == n) return i + 1 - n;
  }
  return units;
}

// allow makes the units before end writable, in whole pages.
static int allow(size_t end) {
  end = (end + UNITS_IN_PAGE - 1) / UNITS_IN_PAGE * UNITS_IN_PAGE;
  if (end <= writable) return 1;
  char *from = region + writable * UNIT;
  size_t size = (end - writable) * UNIT;
  if (mprotect(from, size, PROT_READ | PROT_WRITE)) return 0;
  madvise(from, size, MADV_HUGEPAGE); // without huge pages in the kernel, pages are small
  writable = end;
  return 1;
}

static void use(size_t from, size_t n) {
  for (size_t i = from; i < from + n; i++) {
    struct page *p = &pages[i / UNITS_IN_PAGE];
    count.used += !p->used++;
    count.resident += !p->resident;
    p->resident = 1;
  }
  if (count.used > count.peak) count.peak = count.used;
}

// evict returns unused pages to the system until at most n are resident.
static void evict(size_t n) {
  for (size_t i = writable / UNITS_IN_PAGE; i-- > 0 && count.resident > n;) {
    if (!pages[i].resident || pages[i].used) continue;
    madvise(region + i * BLOCKS_PAGE, BLOCKS_PAGE, MADV_DONTNEED);
    pages[i].resident = 0;
    count.resident--;
  }
}

static void *alloc_range(size_t n) {
  static int tried;
  if (!tried++) reserve();
  size_t at = find(n);
  if (at == units || !allow(at + n)) return NULL;
  length[at] = n;
  use(at, n);
  evict(count.peak);
  count.calls++;
  return region + at * UNIT;
}

void *blocks_alloc(size_t size) {
  if (size < UNIT || size > SIZE_MAX / 2) return NULL;
  pthread_mutex_lock(&lock);
  void *block = alloc_range((size + OVERRUN + UNIT - 1) / UNIT);
  pthread_mutex_unlock(&lock);
  return block;
}

int blocks_free(void *block) {
  uintptr_t from = (uintptr_t)region, b = (uintptr_t)block;
  if (!from || b < from || b >= from + units * UNIT) return 0;
  pthread_mutex_lock(&lock);
  size_t at = (b - from) / UNIT;
  for (size_t i = at; i < at + length[at]; i++) count.used -= !--pages[i / UNITS_IN_PAGE].used;
  length[at] = 0;
  pthread_mutex_unlock(&lock);
  return 1;
}

void blocks_trim(void) {
  pthread_mutex_lock(&lock);
  count.peak = count.used;
  evict(count.used);
  pthread_mutex_unlock(&lock);
}

struct blocks_counts blocks_count(void) {
  pthread_mutex_lock(&lock);
  struct blocks_counts now = count;
  pthread_mutex_unlock(&lock);
  return now;
}
