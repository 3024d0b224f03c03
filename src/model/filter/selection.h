/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The allocations that pass a filter.  Conditions on a block's own history (its times, size, chain)
 * are evaluated in a first pass and stored as one bit per allocation.  Conditions on the whole
 * recording (its stack's symbols and group, its thread's name, its allocator) are evaluated after
 * the pass.  After that, selection_has() can be called for every block.
 */
#ifndef MODEL_FILTER_SELECTION_H
#define MODEL_FILTER_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "model/filter/filter.h"
#include "model/history/history.h"

struct model;
struct selection;

/**
 * selection_new() - create a selection, before the first pass
 * @f: must outlive the selection
 * @info: of the recording
 * @runtime_ns: length of the recording
 *
 * Return: the selection, to be freed by selection_free(), or NULL when out of memory.
 */
struct selection *selection_new(const struct filter *f, const struct mp_info *info,
				uint64_t runtime_ns);
void selection_free(struct selection *s);

/* Return: whether blocks can be judged when they are allocated; else when they end. */
bool selection_is_early(const struct selection *s);
/* If it is early: in the first pass, for every block that is allocated.  Return: 0 or -ENOMEM. */
int selection_allocated(struct selection *s, const struct history *h, const struct model_block *b);
/* If it is not early: in the first pass, for every block that ends, with the arguments of @h's sink; its stack must be
 * one that the model has.  Return: 0 or -ENOMEM. */
int selection_ended(struct selection *s, const struct history *h, const struct model_block *b,
		    const struct mp_event *by, enum block_end how);
/* If it is not early: after the last event, for every live block.  Return: 0 or -ENOMEM. */
int selection_live(struct selection *s, const struct history *h, const struct model_block *b);

/**
 * selection_close() - evaluate the conditions on the whole recording
 * @m: with groups, threads, functions and symbols of all allocations
 *
 * Return: 0, or a negative errno with @err filled (a search exceeded its limit, out of memory).
 */
int selection_close(struct selection *s, struct model *m, struct mp_err *err);

/* From now on @h reports only blocks that pass; after selection_close().  @drops: as in struct
 * history_filter. */
void selection_apply(const struct selection *s, struct history *h, bool drops);
/* Does the block pass the filter?  Only after selection_close(). */
bool selection_has(const struct selection *s, const struct model_block *b);
/* Return: the culled blocks of @c that pass, with their number in blocks, which can be 0.  @unjudged:
 * number of those for which the sum does not say enough to decide; they do not pass.  Only after
 * selection_close(). */
struct mp_culled selection_part(const struct selection *s, const struct mp_culled *c,
				uint64_t *unjudged);

#endif
