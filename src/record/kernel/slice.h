/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Splits a round of the reader into slices of time, because the ready records of all rings can be
 * far more than the aggregator should sort at once.  Slices have about equal numbers of bytes.
 */
#ifndef RECORD_KERNEL_SLICE_H
#define RECORD_KERNEL_SLICE_H

#include <stdbool.h>
#include <stdint.h>
#include "record/ring.h"

#define SLICE_BINS 1024

struct slicer {
	uint64_t most;	    /* wanted bytes per slice */
	uint64_t low;	    /* start of the bins, in ticks */
	unsigned int shift; /* width of the bins: 2^shift ticks */
	uint64_t bytes[SLICE_BINS];
	uint32_t next; /* first bin after the slices so far */
};

/* Fills @s with a histogram of the bytes in all rings over the time from the first record of a ring to
 * @until.  Earlier and later records are in the first and in the last bin.  @ready[k]: ready bytes of
 * ring k. */
void slice_begin(struct slicer *s, const struct ring *ring, const uint64_t *ready, uint32_t n,
		 uint64_t until, uint64_t most);
/* Return: the end time of the next slice; UINT64_MAX: it contains all remaining records. */
uint64_t slice_next(struct slicer *s);
/* Return: the bytes of the ring's records before the first one later than @until; all of @ready if
 * there is an invalid record, which the aggregator then counts. */
uint64_t slice_up_to(const struct ring *r, uint64_t ready, uint64_t until);

#endif
