/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The target's code as the agent sees it: one unwind table per executable mapping, built by
 * unwind/table.h and published in the session block.  Also what the recording says of modules.
 */
#ifndef INJECT_TABLES_H
#define INJECT_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/target.h"
#include "formats/file.h"
#include "formats/session.h"
#include "inject/jit.h"
#include "lib/check.h"
#include "lib/vec.h"
#include "unwind/table.h"

struct code {
	struct mp_module m; /* its path is one of struct tables */
	uint64_t ino;
	struct ss_module s;
	bool seen; /* in the maps that were read last */
	bool recorded;
};

struct tables {
	struct rule_set *rules;
	uint32_t rules_published;
	struct ss_control *block;   /* our mapping of the session block: written, not read */
	struct ss_control layout;   /* where things are in it */
	uint64_t rows_at, rows_end; /* free part of the row area, offsets in the block */
	uint32_t next_list;
	struct jit jit;		/* what makes code that is in no file ... */
	VEC(uint64_t) gdb_jits; /* ... and where programs list it for debuggers */
	int cache;		/* directory of kept tables, or negative; tables_free() closes it */
	VEC(struct code) code;	/* of the target's files */
	VEC(struct code) past;	/* unloaded ones: their rows serve when they come back */
	VEC(char *) paths; /* each once, until tables_free(): copies of a module may name them */
	VEC(struct ss_module) own; /* agent and islands */
};

/* @layout: offsets in @block, copied: the block itself is the target's to change. */
__must_check int tables_init(struct tables *tb, struct ss_control *block,
			     const struct ss_control *layout);
/* The same for a block whose tables another recorder made and the agent uses: its rules keep their
 * ids, its rows stay, and the agent's own code is known.  Nothing there is believed beyond its
 * bounds.  Return: 0, -EPROTO when it is damaged, -ENOMEM. */
__must_check int tables_resume(struct tables *tb, struct ss_control *block,
			       const struct ss_control *layout);
void tables_free(struct tables *tb);

/**
 * tables_update() - bring the tables in line with @maps and publish
 *
 * New executable mappings get their table; ones that are gone lose it, and the agent's caches are
 * told (generation).  Reads files and, for the vdso, the target's memory; the target runs on.
 * Return: number of mappings that are new, or a negative errno.
 */
__must_check int tables_update(struct tables *tb, struct target *t, const struct maps *maps);

/* Adds code of ours at @addr from @elf's CFI (agent).  Published by the next tables_publish(). */
__must_check int tables_add_agent(struct tables *tb, Elf *elf, uint64_t addr, uint64_t length);
/* Adds rows given directly: @n addresses, ascending, from @start, with rule ids. */
__must_check int tables_add_rows(struct tables *tb, uint64_t start, uint64_t end,
				 const uint64_t *pc, const uint16_t *rule, uint32_t n);
/* Rule id of the row at target address @pc, 0 if none. */
uint16_t tables_rule_at(const struct tables *tb, uint64_t pc);
/* Rule of a function that was just entered. */
uint16_t tables_entry_rule(struct tables *tb);
__must_check int tables_publish(struct tables *tb, bool changed);

#endif
