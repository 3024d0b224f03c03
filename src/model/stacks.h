/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stacks of a recording, by the recording's ids.  Filled by model/facts.c. */
#ifndef MODEL_STACKS_H
#define MODEL_STACKS_H

#include <stdint.h>
#include "lib/vec.h"

struct model_stack {
	uint64_t first; /* index in model_stacks.pc */
	uint32_t n, flags;
};

struct model_stacks {
	struct model_stack *at; /* [stack id]; 0: no stack */
	uint32_t n;		/* ids are below this */
	VEC(uint64_t) pc;
};

#endif
