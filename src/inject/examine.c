/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/examine.h"

#include <errno.h>
#include <stdlib.h>
#include "attach/sandbox.h"
#include "inject/block/layout.h"
#include "inject/hooks/batch.h"

/* Plans the patches as session_install() does, with a journal that is thrown away. */
static int plan_patches(struct session *s, const struct maps *maps, struct mp_err *err)
{
	struct hook_batch *b = calloc(1, sizeof(*b));
	int ret = -ENOMEM;

	if (b) {
		b->s = s;
		b->work = calloc(s->plan.hooks.n + 1, sizeof(*b->work));
		s->journal = calloc(1, sizeof(*s->journal));
		if (b->work && s->journal)
			ret = batch_plan(b, maps, err);
		free(b->work);
	}
	free(b);
	free(s->journal);
	s->journal = NULL;
	return ret == -ENOMEM ? mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory") : ret;
}

/* Errors are in e->refused; the first one decides. */
static void examine(struct session *s, struct maps *maps, struct examination *e)
{
	struct layout layout;
	bool known = !session_plan(s, maps, &e->refused[EXAMINED_ALLOCATOR]);

	ignore_result(sandbox_look(s->t, &e->refused[EXAMINED_SANDBOX]));
	ignore_result(session_refuse_shared(s->t, &e->refused[EXAMINED_SHARED]));
	ignore_result(layout_choose(s->t, 0, &layout, &e->refused[EXAMINED_ROOM]));
	if (known)
		ignore_result(plan_patches(s, maps, &e->refused[EXAMINED_HOOKS]));
}

int session_examine(struct target *t, struct examination *e, struct mp_err *err)
{
	struct session s = {.t = t};
	struct maps maps;
	int ret = blob_open(&s.blob);

	*e = (struct examination){0};
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "the embedded agent is damaged");
	ret = maps_read(t->pid, &maps);
	if (ret) {
		blob_close(&s.blob);
		return target_refused(t, ret, err);
	}
	examine(&s, &maps, e);
	e->plan = s.plan;
	maps_free(&maps);
	blob_close(&s.blob);
	return 0;
}

void examination_free(struct examination *e)
{
	hook_plan_free(&e->plan);
}
