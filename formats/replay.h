/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The replay file: what a program asked its allocator for, for memprof-replay to do again.  Little-
 * endian.  A head, the operations in the order of the recording, a tail.  Blocks live in numbered
 * slots; an operation may be done when all earlier ones of its slot are, whoever does them.
 */
#ifndef FORMATS_REPLAY_H
#define FORMATS_REPLAY_H

#include <stdint.h>

#define REPLAY_MAGIC	   "mpreplay"
#define REPLAY_END	   "mprp-end"
#define REPLAY_VERSION	   1u
#define REPLAY_MAX_WORKERS 256u /* more threads share one */

enum replay_kind {
	REPLAY_MALLOC = 1,
	REPLAY_CALLOC,
	REPLAY_ALIGNED, /* posix_memalign with the alignment 1 << align */
	REPLAY_REALLOC, /* the slot's block */
	REPLAY_FREE,
};

struct replay_head {
	char magic[8];
	uint32_t version, reserved;
};

struct replay_op {
	uint64_t size; /* requested, bytes */
	uint32_t slot;
	uint32_t turn;	 /* number of operations on the slot before */
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
