/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/frames.h"

#include <errno.h>
#include <stdlib.h>
#include "unwind/step.h"

#define MAX_FRAMES 4096

struct unwinder {
	struct image *img;
	struct modules *modules;
};

static bool read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	return image_word(((struct unwinder *)ctx)->img, addr, value);
}

static bool is_code(void *ctx, uint64_t addr)
{
	const struct image_map *m = image_map_at(((struct unwinder *)ctx)->img, addr);

	return m && m->exec;
}

static enum uw_result step(struct unwinder *u, const struct uw_state *s, struct uw_state *next)
{
	struct uw_full rule;

	if (modules_rule(u->modules, s->reg[UW_REG_PC] - !s->exact_pc, &rule) &&
	    uw_rule_holds(rule.flags, s))
		return uw_step_full(&rule, s, next, read_word, u);
	/* The step by frame pointer is for x86-64 only. */
	if (u->img->arch->unwind.call_push != 8 || !uw_step_fp(s, next, read_word, is_code, u))
		return UW_STEP_LOST;
	return UW_STEP_OK;
}

static bool first_state(const struct image *img, const struct image_thread *th, struct uw_state *s)
{
	*s = (struct uw_state){.exact_pc = true};
	for (int i = 0; th->has_regs && i < UW_MAX_REGS; i++) {
		if (img->arch->regs.get_column(&th->regs, i, &s->reg[i]))
			s->valid |= 1u << i;
	}
	return uw_known(s, UW_REG_PC) && uw_known(s, UW_REG_SP);
}

static int take_thread(struct frames *f, struct unwinder *u, const struct image_thread *th)
{
	struct stack_extent all = {.tid = th->tid};
	struct uw_state s, next;

	if (!first_state(u->img, th, &s))
		return 0;
	all.low = all.high = s.reg[UW_REG_SP] - u->img->arch->unwind.red_zone;
	for (int i = 0; i < MAX_FRAMES; i++) {
		struct stack_frame frame = {.low = all.high, .tid = th->tid};
		enum uw_result result = step(u, &s, &next);

		frame.pc = s.reg[UW_REG_PC] - !s.exact_pc;
		frame.sp = s.reg[UW_REG_SP];
		frame.fp = uw_known(&s, UW_REG_FP) ? s.reg[UW_REG_FP] : 0;
		if (result == UW_STEP_OUTERMOST) {
			const struct image_map *m = image_map_at(u->img, s.reg[UW_REG_SP]);

			/* Where it ends is not known: before the thread's control block. */
			all.complete = true;
			frame.high = m ? m->end : frame.low;
			if (frame.high > frame.low &&
			    !(th->tls > frame.low && th->tls < frame.high) &&
			    vec_push(&f->list, frame))
				return -ENOMEM;
			break;
		}
		/* A signal handler's frame can be on another stack than the interrupted function. */
		if (result != UW_STEP_OK || next.reg[UW_REG_SP] < frame.low ||
		    next.reg[UW_REG_SP] - frame.low > 1ull << 30)
			break;
		frame.high = next.reg[UW_REG_SP];
		all.high = frame.high;
		if (vec_push(&f->list, frame))
			return -ENOMEM;
		s = next;
	}
	return vec_push(&f->extents, all);
}

static int by_address(const void *a, const void *b)
{
	const struct stack_frame *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

int frames_take(struct frames *f, struct image *img, struct modules *m)
{
	struct unwinder u = {img, m};
	int ret = 0;

	vec_for_each (&img->threads, th) {
		if (!ret)
			ret = take_thread(f, &u, th);
	}
	vec_sort(&f->list, by_address);
	return ret;
}

void frames_free(struct frames *f)
{
	vec_free(&f->list);
	vec_free(&f->extents);
}

long frames_at(const struct frames *f, uint64_t addr)
{
	size_t low = 0, high = f->list.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (f->list.at[mid].low <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < f->list.at[low - 1].high ? (long)low - 1 : -1;
}

const struct stack_extent *frames_extent(const struct frames *f, pid_t tid)
{
	vec_for_each (&f->extents, e) {
		if (e->tid == tid)
			return e;
	}
	return NULL;
}
