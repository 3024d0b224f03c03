/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Looks up unwind rules in the tables of a session block that the target can have written to. */
#ifndef INJECT_BLOCK_LOOKUP_H
#define INJECT_BLOCK_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "lib/vec.h"
#include "unwind/rule.h"

struct span {
	uint64_t start, end;
};

typedef VEC(struct span) spans_t;

enum lookup {
	LOOKUP_RULE,	  /* found */
	LOOKUP_NO_RULE,	  /* the module is known, but this code has no unwind information */
	LOOKUP_NO_MODULE, /* nothing is known about this address */
};

/**
 * block_rule() - the unwind rule of an instruction
 * @block: memprof's mapping of the session block, @length bytes; every offset in it is checked
 * @pc: address in the target
 * @rule: with LOOKUP_RULE filled with a copy that the target cannot change
 */
enum lookup block_rule(const struct ss_control *block, uint64_t length, uint64_t pc,
		       struct uw_full *rule);

/* Is @pc in executable memory that the tables have, with or without unwind information? */
bool block_is_code(const struct ss_control *block, uint64_t length, uint64_t pc);

#endif
