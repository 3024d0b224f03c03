/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The file that recordings are merged into, and what is in it already: what several of them have
 * alike is there once. */
#ifndef RECORD_MERGE_OUTPUT_H
#define RECORD_MERGE_OUTPUT_H

#include "formats/file.h"
#include "lib/live.h"
#include "lib/vec.h"
#include "record/merge_parts.h"
#include "record/stacks.h"

struct merge_module {
	struct mp_module m; /* path owned */
	uint32_t process;
};

struct merge_output {
	const struct merge_parts *parts;
	struct mpf_writer *w;
	struct stacks stacks;
	VEC(struct mp_hook_info) hooks;	  /* strings owned */
	VEC(struct merge_module) modules; /* as they appeared */
	struct live *symbols[2];	  /* addresses; [1]: of innermost frames */
	struct live *threads;		  /* tid, shifted -> number of its process */
	VEC(bool) ended;		  /* [process]: no item is to come */
	VEC(struct mp_sample) memory;	  /* [process]: the last one */
	struct mp_losses losses;
};

/* Each returns 0, or a negative errno with @err filled. */
int merge_output_open(struct merge_output *o, const char *path, const struct merge_parts *parts,
		      struct mp_err *err);
/* Which processes there are, where they are several. */
int merge_output_processes(struct merge_output *o, struct mp_err *err);
/* Ids of the new file. */
int merge_output_hook(struct merge_output *o, const struct mp_hook_info *h, uint16_t *id,
		      struct mp_err *err);
int merge_output_stack(struct merge_output *o, const struct mpf_item *stack, uint32_t *id,
		       struct mp_err *err);
/* Refused: other code at addresses where another process has some. */
int merge_output_module(struct merge_output *o, const struct mp_module *m, uint32_t process,
			struct mp_err *err);
int merge_output_symbols(struct merge_output *o, const struct mpf_item *symbols,
			 struct mp_err *err);
/* @tid is a thread of @process from now on; refused while it is one of another. */
int merge_output_thread(struct merge_output *o, uint32_t tid, uint32_t process, struct mp_err *err);
/* @s: of @process; what is written is of all. */
int merge_output_memory(struct merge_output *o, const struct mp_sample *s, uint32_t process,
			struct mp_err *err);
/* 0, or @ret with @err filled: the file cannot be written. */
int merge_output_wrote(int ret, struct mp_err *err);
/* Losses, how it ended, the binaries of all, each once, end.
 * @whole: false: it will say that it was cut off; set to false when some binaries are damaged and
 *	   left out. */
int merge_output_close(struct merge_output *o, bool *whole, struct mp_err *err);
/* Also after a failure. */
void merge_output_free(struct merge_output *o);

#endif
