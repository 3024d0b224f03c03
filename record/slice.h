/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A round of the reader in slices of time.  What is ready in all rings at one moment may be far
 * more than the aggregator is to sort at once: slices end at times that leave about so many bytes
 * in each.
 */
#ifndef RECORD_SLICE_H
#define RECORD_SLICE_H

#include <stdbool.h>
#include <stdint.h>
#include "record/ring.h"

#define SLICE_BINS 1024

struct slicer {
	uint64_t most;	     /* bytes wanted in a slice */
	uint64_t low, width; /* of the bins, in ticks */
	uint64_t bytes[SLICE_BINS];
	uint32_t next; /* bin: the slices so far end before it */
};

/* The bytes of all rings by time, in @s.  @ready[k]: bytes of ring k that count. */
void slice_begin(struct slicer *s, const struct ring *ring, const uint64_t *ready, uint32_t n,
		 uint64_t most);
/* Return: the time up to which records are in the next slice; UINT64_MAX: all that are left. */
uint64_t slice_next(struct slicer *s);
/* Bytes of the ring's records up to the first that is later than @until.  What is no record is for
 * the aggregator to count: then all of @ready. */
uint64_t slice_up_to(const struct ring *r, uint64_t ready, uint64_t until);

#endif
