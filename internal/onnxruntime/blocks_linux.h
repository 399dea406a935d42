// Memory of sessions for large bags: an allocator for onnxruntime that reuses the memory of large blocks.

#ifndef MIPLC_BLOCKS_H
#define MIPLC_BLOCKS_H

#include <stddef.h>

#define BLOCKS_PAGE (2 << 20)

// Pages of BLOCKS_PAGE bytes: used by blocks, resident (used, or kept for the next blocks), and the most that
// were used at once since the last blocks_trim. calls is the number of blocks allocated so far.
struct blocks_counts { size_t used, resident, peak, calls; };

// Returns a block aligned to 64 KiB, or NULL if the block is small or there is no room.
void *blocks_alloc(size_t size);

// Returns 0 if the block is not of blocks_alloc.
int blocks_free(void *block);

// Returns all unused pages to the system.
void blocks_trim(void);

struct blocks_counts blocks_count(void);

#endif
