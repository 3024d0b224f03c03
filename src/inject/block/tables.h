/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The target's code as the agent sees it: one unwind table per executable mapping, built by
 * unwind/build.h and published in the session block.  Also the module entries of the recording.
 */
#ifndef INJECT_BLOCK_TABLES_H
#define INJECT_BLOCK_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/target.h"
#include "formats/file.h"
#include "formats/session.h"
#include "inject/block/jit.h"
#include "lib/check.h"
#include "lib/texts.h"
#include "lib/vec.h"
#include "unwind/rule_set.h"

struct code {
	struct mp_module m; /* its path is owned by struct tables */
	uint64_t ino;
	struct ss_module s;
	bool seen; /* present in the maps that were read last */
};

struct tables {
	struct rule_set *rules;
	uint32_t rules_published;
	struct ss_control *block;   /* memprof's mapping of the session block: written, not read */
	struct ss_control layout;   /* trusted offsets in it */
	uint64_t rows_at, rows_end; /* free part of the row area, offsets in the block */
	uint32_t next_list;
	struct jit jit;		/* which generators of code without a file were found ... */
	VEC(uint64_t) gdb_jits; /* ... and the addresses of their lists for debuggers */
	int cache; /* directory of cached tables, or negative; tables_free() closes it */
	VEC(struct code) code;	   /* of the target's files */
	VEC(struct code) past;	   /* unloaded modules: their rows are reused */
	texts_t paths;		   /* each once; copies of modules use them */
	VEC(struct ss_module) own; /* agent and islands */
};

/* @layout: offsets in @block, copied, because the target can change the block itself. */
__must_check int tables_init(struct tables *tb, struct ss_control *block,
			     const struct ss_control *layout);
/* Like tables_init() for a block whose tables were made by another recorder and are in use: rules
 * keep their ids, rows stay, and the agent's own code is known.  Content is checked against its
 * bounds.  Return: 0, -EPROTO if it is damaged, -ENOMEM. */
__must_check int tables_resume(struct tables *tb, struct ss_control *block,
			       const struct ss_control *layout);
void tables_free(struct tables *tb);

/**
 * tables_update() - bring the tables in line with @maps and publish them
 *
 * New executable mappings get a table, removed ones lose it, and the agent's caches are invalidated
 * (generation).  Reads files and, for the vDSO, the target's memory; the target keeps running.
 * Return: number of mappings that are new, or a negative errno.
 */
__must_check int tables_update(struct tables *tb, struct target *t, const struct maps *maps);

/* The code at @start was replaced by other code, which maps can fail to show: the next tables_update() builds
 * its table again. */
void tables_forget(struct tables *tb, uint64_t start);

/* Adds the agent's code at @addr from @elf's CFI.  Published by the next tables_publish(). */
__must_check int tables_add_agent(struct tables *tb, Elf *elf, uint64_t addr, uint64_t length);
/* Adds given rows for [@start, @end): @n addresses, ascending, and their rule ids. */
__must_check int tables_add_rows(struct tables *tb, uint64_t start, uint64_t end,
				 const uint64_t *pc, const uint16_t *rule, uint32_t n);
/* Return: rule id of the row at target address @pc, 0 if none. */
uint16_t tables_rule_at(const struct tables *tb, uint64_t pc);
/* Return: rule id for the first instruction of a function. */
uint16_t tables_entry_rule(struct tables *tb);
__must_check int tables_publish(struct tables *tb, bool changed);

#endif
