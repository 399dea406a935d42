//go:build cgo

package ortenv

// #include <stdlib.h>
// #include <malloc.h>
// static void return_large_blocks(void) {
// #ifdef __GLIBC__
//   mallopt(M_MMAP_THRESHOLD, 8 << 20);
// #endif
// }
import "C"

// returnLargeBlocks makes glibc return blocks of 8 MiB and more to the system when they are
// freed. By default it keeps freed blocks of up to 32 MiB, some 60 MB in each arena. There are up
// to eight arenas for each core, and all of them fill up, because the threads of Go take turns.
func returnLargeBlocks() { C.return_large_blocks() }
