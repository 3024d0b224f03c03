/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The replay file: a program's requests to its allocator, for memprof-replay to repeat.
 * Little-endian.  It consists of a head, the operations in the order of the recording, and a tail.
 * Blocks are in numbered slots; an operation can run when all earlier operations on its slot are
 * done, by any thread.
 */
#ifndef FORMATS_REPLAY_H
#define FORMATS_REPLAY_H

#include <stdint.h>

#define REPLAY_MAGIC	   "mpreplay"
#define REPLAY_END	   "mprp-end"
#define REPLAY_VERSION	   1u
#define REPLAY_MAX_WORKERS 256u /* if there are more threads, some share a worker */

enum replay_kind {
	REPLAY_MALLOC = 1,
	REPLAY_CALLOC,
	REPLAY_ALIGNED, /* posix_memalign with the alignment 1 << align */
	REPLAY_REALLOC, /* of the slot's block */
	REPLAY_FREE,
};

struct replay_head {
	char magic[8];
	uint32_t version, reserved;
};

struct replay_op {
	uint64_t size; /* requested, bytes */
	uint32_t slot;
	uint32_t turn;	 /* number of earlier operations on the slot */
	uint16_t worker; /* thread, from 0 */
	uint8_t kind;	 /* enum replay_kind */
	uint8_t align;
	uint32_t reserved;
};

struct replay_tail {
	uint64_t ops, slots, workers;
	uint64_t peak_bytes, live_bytes, live_blocks; /* requested */
	uint64_t reserved;
	char magic[8];
};

#endif
