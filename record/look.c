/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is seen of the target from outside, about once a second: names, memory, mappings. */
#include <stdio.h>
#include <string.h>
#include "attach/procfs.h"
#include "attach/smaps.h"
#include "lib/deadline.h"
#include "record/internal.h"

#define USAGE_NS 10000000000ull

static void put_thread_names(struct recorder *r)
{
	for (uint32_t i = 0; i < r->nslots; i++) {
		struct slot_state *slot = &r->slot[i];
		struct proc_status st;

		if (!slot->tid || proc_status_read(r->config.pid, (pid_t)slot->tid, &st) ||
		    (slot->written_tid == slot->tid && slot->written_piece == r->piece.number &&
		     !strcmp(slot->written_name, st.name)))
			continue;
		mpf_put_thread(r->file, slot->tid, st.name);
		slot->written_tid = slot->tid;
		slot->written_piece = r->piece.number;
		snprintf(slot->written_name, sizeof(slot->written_name), "%s", st.name);
	}
}

static void put_memory(struct recorder *r, uint64_t now)
{
	struct mp_sample s = {.time_ns = now};
	struct proc_memory m;

	if (proc_memory_read(r->config.pid, &m))
		return;
	s.rss = m.rss;
	s.anonymous = m.anonymous;
	s.file = m.file;
	s.swap = m.swap;
	s.address_space = m.address_space;
	mpf_put_sample(r->file, &s);
}

/* Now and then, and not more than a hundredth of the time is spent on it: see map_usages_read(). */
static void put_map_usage(struct recorder *r, uint64_t now)
{
	uint64_t before = mono_ns(), took, anonymous = 0;
	struct map_usages list;

	if (now < r->next_usage_ns || map_usages_read(r->config.pid, &list))
		return;
	took = mono_ns() - before;
	r->next_usage_ns = now + (took * 100 > USAGE_NS ? took * 100 : USAGE_NS);
	vec_for_each (&list.list, u) {
		struct mp_map_usage usage = {now,	   u->start, u->end,  u->rss,
					     u->anonymous, u->swap,  u->prot, u->path};

		mpf_put_map_usage(r->file, &usage);
		if (!u->path || !*u->path || !strncmp(u->path, "[anon", 5))
			anonymous += u->anonymous;
	}
	r->now.anonymous = anonymous;
	map_usages_free(&list);
}

void look_at_target(struct recorder *r, uint64_t now)
{
	put_thread_names(r);
	if (r->end_ns)
		return;
	put_memory(r, now);
	put_map_usage(r, now);
}
