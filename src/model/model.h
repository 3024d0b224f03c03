/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording as seen by reports, read in one streaming pass that replays the live table:
 * history/history.h makes blocks of the events, sums/totals.h their sums, facts.h takes the rest.  With a
 * filter (filter/filter.h) there are two passes; filter/selection.h has the allocations that pass it.
 *
 * Other ways to read a recording: sums/quick.h (its own sums only), sums/at_time.h (up to a moment),
 * match.h (which blocks were live), contents.h (a check).
 *
 * Definitions:
 *
 * - leaked, live: allocated during the recording and not freed in it
 *
 * - temporary: freed by the thread that allocated it, before that thread allocated again
 *
 * - size: bytes requested; usable: bytes that the allocator really gave
 *
 * - foreign free: free of a block that the recording has no allocation of
 *
 * A successful realloc ends the old block and begins a new one.
 *
 * With a filter, all sums are those of a recording that has only the allocations that pass it;
 * model.unfiltered has the sums of all.  Which allocations are temporary is always decided by all
 * events.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/err.h"
#include "lib/vec.h"
#include "model/facts.h"
#include "model/history/history.h"
#include "model/names/frames.h"
#include "model/names/shown.h"
#include "model/stacks.h"
#include "model/sums/sums.h"
#include "model/tasks.h"

struct filter;
struct selection;

/* Where a model came from. */
struct source {
	char *path;		     /* of the recording */
	struct mpf_reader *reader;   /* owns the strings of model.info */
	struct selection *selection; /* NULL: no filter */
	bool quick;		     /* read from the index only: model/sums/quick.h */
	char *truncated;	     /* why the file is truncated; NULL: it is complete */
	struct history_progress progress;
};

/* The sums of all allocations, if there is a filter. */
struct unfiltered {
	struct group *group; /* as sums.group; NULL: there is no filter */
	struct group total;
};

/* The stacks that the filter's suppressions removed, with all their allocations. */
struct suppressed {
	uint64_t stacks;
	struct group sum;
};

/* What is not certain in the sums. */
struct doubts {
	uint64_t uncertain_blocks; /* upper bound of the live blocks that were in fact freed */
	uint64_t unjudged_blocks, unjudged_bytes; /* culled; the filter cannot decide */
};

/*
 * Each part is filled by the file named.  Except: model/sums/quick.c, which reads the index instead of
 * the events, fills counts and sums itself, and match_weigh() (model/match.h) replaces the sums.
 */
struct model {
	struct mp_info info;	      /* formats/file_read.c */
	struct source source;	      /* model/model.c */
	struct model_stacks stacks;   /* model/facts.c */
	struct tasks tasks;	      /* model/facts.c, the sums in it by model/sums/totals.c */
	struct facts facts;	      /* model/facts.c */
	struct naming naming;	      /* model/facts.c, model/names/frames.c */
	struct shown shown;	      /* the command, model/names/shown.c */
	struct history_counts counts; /* model/history/history.c */
	struct sums sums;	      /* model/sums/totals.c */
	struct unfiltered unfiltered; /* model/model.c */
	struct suppressed suppressed; /* model/filter/stack_conditions.c */
	struct doubts doubts;	      /* model/model.c */
	/* model/model.c: live at the end, sorted by address; if requested */
	VEC(struct model_block) blocks;
};

struct model_options {
	const struct filter *filter; /* NULL: everything; must outlive the model */
	bool blocks; /* fill model.blocks, which takes memory for every live block */
	struct history_progress progress;
};

/**
 * model_load() - read a recording: once, or twice with a filter
 * @o: NULL: no filter, no blocks, no progress
 *
 * Return: 0 with @m filled (to be freed by model_free()), or a negative errno with @err.
 */
int model_load(const char *path, const struct model_options *o, struct model *m,
	       struct mp_err *err);
void model_free(struct model *m);
/* Makes an empty model, for quick_load().  Return: 0, or -ENOMEM with @err; in both cases to be
 * freed by model_free(). */
int model_begin(struct model *m, const char *path, const struct history_progress *progress,
		struct mp_err *err);

/* Reads the recording again: all items, and the blocks that pass the filter.  Return: 0, or a
 * negative errno with @err. */
int model_replay(const struct model *m, const struct history_sink *sink,
		 const struct history_until *until, struct mp_err *err);

#endif
