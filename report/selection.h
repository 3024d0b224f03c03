/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The allocations that a filter lets through.  What depends on a block's own history (its times,
 * size, chain) is judged in a first pass and kept as one bit an allocation; what depends on facts
 * about the whole recording (its stack's symbols and group, its thread's name, its allocator) is
 * settled after it.  From then on selection_has() answers for every block.
 */
#ifndef REPORT_SELECTION_H
#define REPORT_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "report/filter.h"
#include "report/history.h"

struct model;
struct selection;

/**
 * selection_new() - before the first pass
 * @f: outlives the selection
 * @info: of the recording
 * @runtime_ns: its length
 *
 * Return: the selection, freed by selection_free(), or NULL when out of memory.
 */
struct selection *selection_new(const struct filter *f, const struct mp_info *info,
				uint64_t runtime_ns);
void selection_free(struct selection *s);

/* First pass: every block that ends, as @h tells its sink; its stack is one that the model has.
 * Return: 0 or -ENOMEM. */
int selection_ended(struct selection *s, const struct history *h, const struct model_block *b,
		    const struct mp_event *by, enum block_end how);
/* After the last event: every block that is live.  Return: 0 or -ENOMEM. */
int selection_live(struct selection *s, const struct history *h, const struct model_block *b);

/**
 * selection_close() - settle what depends on the whole recording
 * @m: with groups, threads, functions and symbols of all allocations
 *
 * Return: 0, or a negative errno with @err filled (a search costs too much, out of memory).
 */
int selection_close(struct selection *s, struct model *m, struct mp_err *err);

/* Only after selection_close(). */
bool selection_has(const struct selection *s, const struct model_block *b);
/* The same of culled blocks, of which only stack and threads are known: let through if that is
 * enough to say so; selection_is_blind(): left out only because it is not. */
bool selection_has_culled(const struct selection *s, const struct mp_culled *c);
bool selection_is_blind(const struct selection *s, const struct mp_culled *c);

#endif
