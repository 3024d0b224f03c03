/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/frames.h"

#include <errno.h>
#include <stdlib.h>
#include "api/error.h"
#include "api/sized.h"
#include "model/names/frames.h"

struct memprof_frames {
	struct model *m;
	const struct model_stack *stack;
	uint32_t next_pc; /* index in the stack */
	struct frame of_pc[MAX_INLINED];
	uint32_t n, next; /* in of_pc */
};

int frames_begin(struct model *m, uint32_t stack, memprof_frames **out, struct memprof_error *err)
{
	static const struct model_stack none;
	memprof_frames *f = calloc(1, sizeof(*f));

	if (!f)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	f->m = m;
	f->stack = stack < m->stacks.n ? &m->stacks.at[stack] : &none;
	*out = f;
	return MEMPROF_OK;
}

int memprof_frames_next(memprof_frames *f, struct memprof_frame *out)
{
	const struct frame *frame;

	if (f->next == f->n) {
		if (f->next_pc == f->stack->n)
			return 0;
		f->n = model_frames(f->m, f->m->stacks.pc.at[f->stack->first + f->next_pc++],
				    f->of_pc, MAX_INLINED);
		f->next = 0;
	}
	frame = &f->of_pc[f->next++];
	sized_give(&(struct memprof_frame){0, frame->function, frame->source, frame->library,
					   frame->address, frame->line, frame->is_inline},
		   sizeof(*out), out);
	return 1;
}

void memprof_frames_free(memprof_frames *f)
{
	free(f);
}
