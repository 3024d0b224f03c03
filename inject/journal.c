/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The journal has two copies: ours, which is believed, and the block's, for whoever comes later. */
#include <stdio.h>
#include <string.h>
#include "inject/internal.h"

void journal_publish(struct session *s)
{
	const struct ss_journal *from = s->journal;
	struct ss_journal *to = s->shared;

	memcpy(to->island, from->island, sizeof(to->island));
	memcpy(to->hook, from->hook, from->nhooks * sizeof(to->hook[0]));
	memcpy(to->recording, from->recording, sizeof(to->recording));
	memcpy(to->control, from->control, sizeof(to->control));
	to->recorder_pid = from->recorder_pid;
	to->recorder_start = from->recorder_start;
	to->started_at = from->started_at;
	to->agent_addr = from->agent_addr;
	to->agent_length = from->agent_length;
	to->gate_addr = from->gate_addr;
	to->session_addr = from->session_addr;
	to->session_length = from->session_length;
	__atomic_store_n(&to->nislands, from->nislands, __ATOMIC_RELEASE);
	__atomic_store_n(&to->nhooks, from->nhooks, __ATOMIC_RELEASE);
	__atomic_store_n(&to->state, from->state, __ATOMIC_RELEASE);
}

void journal_publish_hook(struct session *s, uint32_t i)
{
	s->shared->hook[i] = s->journal->hook[i];
	__atomic_store_n(&s->journal->nhooks, i + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&s->shared->nhooks, i + 1, __ATOMIC_RELEASE);
}

void session_set_recording(struct session *s, const char *path)
{
	struct ss_journal *j = s->journal;

	snprintf(j->recording, sizeof(j->recording), "%s", path);
	memcpy(s->shared->recording, j->recording, sizeof(j->recording));
}

void journal_set_state(struct session *s, enum ss_state state)
{
	s->journal->state = state;
	__atomic_store_n(&s->shared->state, state, __ATOMIC_RELEASE);
}

/* What the target can have written is not trusted beyond its bounds. */
static bool sane(const struct session *s)
{
	const struct ss_journal *j = s->journal;

	if (j->nhooks > SS_MAX_HOOKS || j->nislands > SS_MAX_ISLANDS)
		return false;
	for (uint32_t i = 0; i < j->nhooks; i++) {
		if (j->hook[i].length > SS_WINDOW || j->hook[i].insns > SS_MAX_INSNS)
			return false;
	}
	return true;
}

int journal_load(struct session *s)
{
	/* Once: it could change under the check. */
	memcpy(s->journal, s->shared, sizeof(*s->journal));
	s->journal->recording[sizeof(s->journal->recording) - 1] = 0;
	s->journal->control[sizeof(s->journal->control) - 1] = 0;
	return sane(s) ? 0 : -EPROTO;
}

bool journal_hook_mapped(const struct maps *maps, const struct ss_journal_hook *h)
{
	const struct map *m = maps_find(maps, h->addr);

	return m && m->exec && m->ino == h->ino && m->dev_major == h->dev_major &&
	       m->dev_minor == h->dev_minor && m->start - m->offset == h->map_start - h->map_offset;
}

void journal_forget_hook(struct session *s, uint32_t i)
{
	s->journal->hook[i].patched = 0;
	s->shared->hook[i].patched = 0;
}
