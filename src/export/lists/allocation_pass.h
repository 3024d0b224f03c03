/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads a recording for its single allocations, each when its end is known. */
#ifndef EXPORT_LISTS_ALLOCATION_PASS_H
#define EXPORT_LISTS_ALLOCATION_PASS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "model/history/history.h"

struct model;

enum allocation_key { BY_TIMESTAMP, BY_ADDRESS, BY_SIZE, BY_LIFETIME, ALLOCATION_KEYS };

struct allocation {
	struct model_block block;
	uint64_t key;
	uint64_t end_ns, end_tid;
	uint32_t end_stack; /* 0: not recorded */
	bool ended;
	uint64_t chain; /* ordinal of the chain's first member */
	uint64_t position;
};

/* The end of a chain with more than one member.  The first member is the key: by_number(). */
struct chain_end {
	uint64_t chain, length, first_ns, end_ns;
	uint32_t end_tid;
	bool ended;
};

/* Each callback returns 0, or a negative errno that ends the pass. */
struct allocation_sink {
	/* Every allocation that passes the filter. */
	int (*one)(void *ctx, const struct allocation *a);
	/* After all members of a chain; NULL: not called. */
	int (*chain)(void *ctx, const struct chain_end *c);
	void *ctx;
};

/**
 * allocations_pass() - read the recording once
 * @key: what allocation.key is set to
 *
 * Return: 0, or a negative errno with @err.
 */
int allocations_pass(const struct model *m, enum allocation_key key,
		     const struct allocation_sink *sink, struct mp_err *err);

/* Return: < 0 if @x comes before @y in a list by keys, > 0 if after.  Equal keys are in the order of the
 * recording. */
int allocation_compare(const struct allocation *x, const struct allocation *y, bool descending);

#endif
