/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All code that the process had mapped since the recording began, and the addresses under which it is recorded.
 *
 * Code that is mapped where other code was before (a library was unloaded, another one is loaded there) has
 * a number: how many others were known at this place.  It is recorded at its address plus the number times
 * 2^48, so that an address in a recording means one function only.
 */
#ifndef CONTROL_CODE_HISTORY_H
#define CONTROL_CODE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "formats/file.h"
#include "inject/block/tables.h"
#include "lib/check.h"
#include "lib/texts.h"
#include "lib/vec.h"
#include "record/pieces/carry.h"
#include "record/sideband.h"
#include "record/stacks/code_ranges.h"

struct code_entry {
	struct mp_module m; /* as it is recorded */
	uint64_t ino;	    /* 0: not from an ELF file */
	uint64_t add;	    /* address in the recording minus that in the process */
	bool in_tables;	    /* at the last code_history_update() */
	bool announced;	    /* since then a perf event told when it was mapped */
};

/* If zeroed: empty. */
struct code_history {
	VEC(struct code_entry) entries; /* generated code only while it is mapped */
	size_t next_module;		/* the first entry that is not in the recording yet */
	VEC(struct code_change) changes;
	size_t next_change;   /* the first one that the recorder has not got yet */
	VEC(uint64_t) forget; /* addresses for tables_forget() */
	texts_t paths;	      /* each once; modules use them until the end */
	uint64_t replaced_ns; /* when code was last mapped in the place of other code; 0: never */
	bool is_stale;	      /* the tables are of other code than code_history_mapped() told */
};

void code_history_free(struct code_history *h);

/* Adds the modules of the previous recorder's recording, which the recorder writes itself.  Return: 0 or -ENOMEM. */
__must_check int code_history_continue(struct code_history *h, const struct carry *carry);

/**
 * code_history_mapped() - note that the process has mapped code from a file
 * @code: in the order of time; can be unmapped again
 * @replaced: other code is known to be mapped there now
 * Return: 0 or -ENOMEM.
 */
__must_check int code_history_mapped(struct code_history *h, pid_t pid,
				     const struct sideband_code *code, bool replaced);

/* When the tables were updated (CLOCK_MONOTONIC). */
struct code_look_times {
	uint64_t read_ns;      /* before the mappings were read */
	uint64_t published_ns; /* from then on the agent uses the tables */
};

/**
 * code_history_update() - note the code that the tables have, which were just published
 *
 * If no perf event told when code took the place of other code, the calls of the new code before this update
 * have the names of the old code.  Return: 0 or -ENOMEM.
 */
__must_check int code_history_update(struct code_history *h, const struct tables *tb,
				     const struct code_look_times *t);

/* Return: false if all modules were returned; the path of @m stays valid. */
bool code_history_next_module(struct code_history *h, struct mp_module *m);
/* Return: false if all changes were returned. */
bool code_history_next_change(struct code_history *h, struct code_change *c);

#endif
