/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/filter/stack_conditions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"

#define FIRST 1024u

/* The result for one address: the same few thousand addresses recur in all stacks. */
struct verdict {
	uint64_t pc;
	uint32_t frames; /* 0: empty slot */
	bool wanted, rejected, suppressed;
};

struct verdicts {
	const struct filter *f;
	struct model *m;
	struct verdict *slot;
	uint64_t cap, n;
};

static bool asks_names(const struct filter *f)
{
	return f->function.want || f->source.want || f->library.want || f->function.reject ||
	       f->source.reject || f->library.reject || f->suppress.pattern.n;
}

static int find_text(const struct pattern *p, const char *text, struct mp_err *err)
{
	return text ? pattern_find(p, text, err) : 0;
}

/* One frame must match all positive patterns; no frame may match a negative one. */
static int judge_frame(const struct filter *f, const struct frame *fr, struct verdict *v,
		       struct mp_err *err)
{
	const struct {
		const struct search_pair *s;
		const char *text;
	} part[] = {
	    {&f->function, fr->function}, {&f->source, fr->source}, {&f->library, fr->library}};
	bool wanted = true;
	int ret;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		if (part[i].s->want) {
			ret = find_text(part[i].s->want, part[i].text, err);
			if (ret < 0)
				return ret;
			wanted = wanted && ret;
		}
		if (part[i].s->reject) {
			ret = find_text(part[i].s->reject, part[i].text, err);
			if (ret < 0)
				return ret;
			v->rejected = v->rejected || ret;
		}
	}
	v->wanted = v->wanted || wanted;
	v->suppressed = v->suppressed || suppressions_match(&f->suppress, fr->function) ||
			suppressions_match(&f->suppress, fr->source) ||
			suppressions_match(&f->suppress, fr->library);
	return 0;
}

static int filter_frames(struct verdicts *t, uint64_t pc, struct verdict *v, struct mp_err *err)
{
	struct frame f[MAX_INLINED];
	int ret = 0;

	*v = (struct verdict){.pc = pc, .frames = model_frames(t->m, pc, f, MAX_INLINED)};
	for (uint32_t i = 0; asks_names(t->f) && i < v->frames && !ret; i++)
		ret = judge_frame(t->f, &f[i], v, err);
	return ret;
}

static struct verdict *slot_of(const struct verdicts *t, uint64_t pc)
{
	uint64_t i = pc * 0x9e3779b97f4a7c15ull >> 20;

	for (;; i++) {
		struct verdict *v = &t->slot[i & (t->cap - 1)];

		if (!v->frames || v->pc == pc)
			return v;
	}
}

static int grow_verdicts(struct verdicts *t)
{
	struct verdicts bigger = *t;

	bigger.cap = t->cap ? t->cap * 2 : FIRST;
	bigger.slot = calloc(bigger.cap, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->cap; i++) {
		if (t->slot[i].frames)
			*slot_of(&bigger, t->slot[i].pc) = t->slot[i];
	}
	free(t->slot);
	*t = bigger;
	return 0;
}

/* Return: the verdict on @pc, or NULL with @ret and @err set. */
static const struct verdict *verdict(struct verdicts *t, uint64_t pc, int *ret, struct mp_err *err)
{
	struct verdict *v;

	if (t->n >= t->cap / 2 && grow_verdicts(t)) {
		*ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
		return NULL;
	}
	v = slot_of(t, pc);
	if (!v->frames) {
		*ret = filter_frames(t, pc, v, err);
		if (*ret)
			return NULL;
		t->n++;
	}
	return v;
}

/* Counts a stack that a suppression removes. */
static void suppress(struct model *m, const struct model_stack *s)
{
	m->suppressed.stacks++;
	group_add(&m->suppressed.sum, &m->sums.group[s - m->stacks.at]);
}

/* Return: 1 matches; 0 does not; or a negative errno. */
static int stack_fits(struct verdicts *t, const struct model_stack *s, struct mp_err *err)
{
	const struct filter *f = t->f;
	bool wanted = !f->function.want && !f->source.want && !f->library.want, suppressed = false;
	uint64_t depth = 0;
	int ret = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct verdict *v = verdict(t, t->m->stacks.pc.at[s->first + i], &ret, err);

		if (!v)
			return ret;
		depth += v->frames;
		wanted = wanted || v->wanted;
		suppressed = suppressed || v->suppressed;
		if (v->rejected)
			return 0;
	}
	if (!wanted || depth < f->depth.min || depth > f->depth.max)
		return 0;
	if (suppressed)
		suppress(t->m, s);
	return !suppressed;
}

int stacks_match(const struct filter *f, struct model *m, uint8_t *keep, struct mp_err *err)
{
	struct verdicts t = {.f = f, .m = m};
	int ret = 0;

	if (!asks_names(f) && !f->depth.min && f->depth.max == UINT64_MAX)
		return 0;
	for (uint32_t id = 0; id < m->stacks.n && ret >= 0; id++) {
		if (!keep[id])
			continue;
		ret = stack_fits(&t, &m->stacks.at[id], err);
		keep[id] = ret > 0;
	}
	free(t.slot);
	return ret < 0 ? ret : 0;
}
