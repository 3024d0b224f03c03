/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Continues a session with another recorder: nothing is stopped or patched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inject/block/layout.h"
#include "inject/internal.h"

/* Makes a plan of the functions that are hooked already. */
static int plan_from_journal(struct session *s)
{
	for (uint32_t i = 0; i < s->journal->nhooks; i++) {
		const struct ss_journal_hook *j = &s->journal->hook[i];
		const struct ss_hook_name *name = &s->journal->name[j->name];
		struct planned_hook h = {.addr = j->addr,
					 .end = j->function_end,
					 .kind = (uint8_t)j->kind,
					 .sibling = -1,
					 .gone = !j->patched,
					 .map_start = j->map_start,
					 .map_offset = j->map_offset,
					 .ino = j->ino,
					 .dev_major = j->dev_major,
					 .dev_minor = j->dev_minor};

		snprintf(h.name, sizeof(h.name), "%s", name->name);
		snprintf(h.module, sizeof(h.module), "%s", name->module);
		if (vec_push(&s->plan.hooks, h))
			return -ENOMEM;
	}
	snprintf(s->plan.allocators, sizeof(s->plan.allocators), "as before");
	return 0;
}

/* An agent of another build has its entry points elsewhere, so it gets no new hooks. */
static bool same_agent(const struct session *s)
{
	uint8_t *text = malloc(s->blob.text_length);
	bool same =
	    text && !mem_read(&s->t->mem, s->journal->agent_addr, text, s->blob.text_length);

	/* The gate follows the code; it is not in the image. */
	same =
	    same &&
	    s->journal->agent_length == s->blob.mapped_length + session_private_bytes(&s->layout) &&
	    !memcmp(text, s->blob.text, s->blob.text_length);
	free(text);
	return same;
}

static int go_on(struct session *s)
{
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps);

	if (ret)
		return ret;
	ret = plan_from_journal(s);
	if (!ret)
		ret = tables_resume(&s->tables, s->block, &s->layout);
	if (!ret && tables_update(&s->tables, s->t, &maps) < 0)
		ret = -ENOMEM;
	maps_free(&maps);
	return ret;
}

int session_resume(struct session *s, struct target *t, struct mp_err *err)
{
	int ret = session_adopt(s, t, err);

	if (ret)
		return ret;
	if (!s->block || s->journal->state != SS_LIVE || session_is_child(s)) {
		session_free(s);
		return mp_fail(err, MP_EXIT_ATTACHED, -EBUSY,
			       "the session in process %d was not recording when its recorder "
			       "died; remove it first: memprof detach -p %d",
			       t->pid, t->pid);
	}
	s->adopted = false; /* this recorder owns it now */
	ret = layout_is_sound(&s->layout, s->length) ? blob_open(&s->blob) : -EPROTO;
	s->other_agent = !ret && !same_agent(s);
	if (!ret)
		ret = go_on(s);
	if (ret) {
		session_free(s);
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "the session in process %d cannot be continued: %s; remove it with: "
			       "memprof detach -p %d",
			       t->pid, strerror(-ret), t->pid);
	}
	return 0;
}

int session_take_over(struct session *s, const struct session_options *o)
{
	struct ss_journal *j = s->journal;
	int32_t before = j->recorder_pid;

	if (!__atomic_compare_exchange_n(&s->shared->recorder_pid, &before, getpid(), false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return -EBUSY;
	snprintf(j->recording, sizeof(j->recording), "%s", o->recording ? o->recording : "");
	snprintf(j->control, sizeof(j->control), "%s", o->control ? o->control : "");
	j->recorder_pid = getpid();
	j->recorder_start = proc_start_time(getpid());
	s->block->detach_requested = 0;
	/* The hooks are those of a budget, or not, from the beginning of the session. */
	if (o->overhead_ppm && s->layout.overhead_ppm)
		s->layout.overhead_ppm = o->overhead_ppm;
	s->block->overhead_ppm = s->layout.overhead_ppm;
	layout_rings(&s->layout, o->lossless, !o->no_thinning);
	s->block->lossless = s->layout.lossless;
	s->block->ring_alloc = s->layout.ring_alloc;
	s->block->ring_shift = s->layout.ring_shift;
	s->block->ring_thin = s->layout.ring_thin;
	s->block->pressure = s->layout.pressure;
	s->block->thin_from = s->layout.thin_from;
	s->look_again = true;
	journal_publish(s);
	return 0;
}

void session_leave(struct session *s)
{
	s->journal->recorder_pid = 0;
	s->journal->recorder_start = 0;
	s->journal->control[0] = 0;
	journal_publish(s);
}
