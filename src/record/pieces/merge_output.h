/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of a merge.  Hooks, stacks, modules and symbols that several recordings share are
 * written once. */
#ifndef RECORD_PIECES_MERGE_OUTPUT_H
#define RECORD_PIECES_MERGE_OUTPUT_H

#include "formats/file.h"
#include "lib/live.h"
#include "lib/vec.h"
#include "record/pieces/merge_parts.h"
#include "record/stacks/stacks.h"

struct merge_module {
	struct mp_module m; /* path owned */
	uint32_t process;
};

/* Code in no file, named by the program. */
struct merge_generated {
	char *function, *source; /* source: NULL: not known */
};

struct merge_output {
	const struct merge_parts *parts;
	struct mpf_writer *w;
	struct stacks stacks;
	VEC(struct mp_hook_info) hooks;	  /* strings owned */
	VEC(struct merge_module) modules; /* in order of appearance */
	struct live *symbols[2]; /* addresses already written; [1]: those of innermost frames */
	VEC(struct merge_generated) generated; /* numbered from 1 in symbols */
	struct live *threads;		       /* tid, shifted -> number of its process */
	VEC(bool) ended;		       /* [process]: has no more items */
	VEC(struct mp_sample) memory;	       /* [process]: its last sample */
	struct mp_losses losses;
};

/* Each returns 0, or a negative errno with @err filled. */
int merge_output_open(struct merge_output *o, const char *path, const struct merge_parts *parts,
		      struct mp_err *err);
/* Writes the list of processes, if there are several. */
int merge_output_processes(struct merge_output *o, struct mp_err *err);
/* Write a hook or stack unless the file has it, and set @id to its id in the new file. */
int merge_output_hook(struct merge_output *o, const struct mp_hook_info *h, uint16_t *id,
		      struct mp_err *err);
int merge_output_stack(struct merge_output *o, const struct mpf_item *stack, uint32_t *id,
		       struct mp_err *err);
/* Writes a module unless the file has it.  Refused: another process has different code at these
 * addresses. */
int merge_output_module(struct merge_output *o, const struct mp_module *m, uint32_t process,
			struct mp_err *err);
int merge_output_symbols(struct merge_output *o, const struct mpf_item *symbols,
			 struct mp_err *err);
/* Notes that @tid is a thread of @process from now on.  Refused: it belongs to another process that
 * has not ended. */
int merge_output_thread(struct merge_output *o, uint32_t tid, uint32_t process, struct mp_err *err);
/* @s: sample of @process.  Writes the sum over all processes. */
int merge_output_memory(struct merge_output *o, const struct mp_sample *s, uint32_t process,
			struct mp_err *err);
/* Return: 0 if @ret is 0, else @ret with @err filled (the file cannot be written). */
int merge_output_wrote(int ret, struct mp_err *err);
/* Writes the losses, the finish item and the binaries of all parts, each once, and closes the
 * file.  @whole: false: mark the file as cut off; set to false if damaged binaries were left out.
 */
int merge_output_close(struct merge_output *o, bool *whole, struct mp_err *err);
/* To be called after a failure, too. */
void merge_output_free(struct merge_output *o);

#endif
