/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The journal has two copies: the recorder's, which is trusted, and the block's, for a later
 * memprof. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "inject/internal.h"

void journal_publish(struct session *s)
{
	const struct ss_journal *from = s->journal;
	struct ss_journal *to = s->shared;

	memcpy(to->island, from->island, sizeof(to->island));
	memcpy(to->hook, from->hook, from->nhooks * sizeof(to->hook[0]));
	memcpy(to->name, from->name, from->nnames * sizeof(to->name[0]));
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
	__atomic_store_n(&to->nnames, from->nnames, __ATOMIC_RELEASE);
	__atomic_store_n(&to->nhooks, from->nhooks, __ATOMIC_RELEASE);
	__atomic_store_n(&to->state, from->state, __ATOMIC_RELEASE);
}

uint32_t journal_name(struct ss_journal *j, uint32_t n, const char *name, const char *module,
		      uint32_t kind)
{
	struct ss_hook_name *at = j->name;

	for (; at < j->name + n; at++) {
		if (at->kind == kind && !strcmp(at->name, name) && !strcmp(at->module, module))
			return (uint32_t)(at - j->name);
	}
	if (n == SS_MAX_NAMES)
		return n;
	snprintf(at->name, sizeof(at->name), "%s", name);
	snprintf(at->module, sizeof(at->module), "%s", module);
	at->kind = kind;
	return n;
}

/* The aggregator reads the addresses of functions while entries change: function_end is 0 during
 * the change. */
static void put_hook(struct ss_journal_hook *to, const struct ss_journal_hook *from)
{
	__atomic_store_n(&to->function_end, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->addr, from->addr, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->kind, from->kind, __ATOMIC_SEQ_CST);
	memcpy(&to->name, &from->name, sizeof(*to) - offsetof(struct ss_journal_hook, name));
	__atomic_store_n(&to->function_end, from->function_end, __ATOMIC_RELEASE);
}

bool session_hook_spans(const struct ss_journal_hook *h, uint64_t pc, uint32_t *kind)
{
	uint64_t end = __atomic_load_n(&h->function_end, __ATOMIC_SEQ_CST);
	uint64_t addr = __atomic_load_n(&h->addr, __ATOMIC_SEQ_CST);

	*kind = __atomic_load_n(&h->kind, __ATOMIC_SEQ_CST);
	return pc > addr && pc <= end && __atomic_load_n(&h->function_end, __ATOMIC_SEQ_CST) == end;
}

/* First the name, then the hook that refers to it, then the count. */
static void put_counted(struct ss_journal *j, uint32_t i, const struct ss_journal_hook *h,
			const struct ss_hook_name *name)
{
	if (h->name >= j->nnames) {
		j->name[h->name] = *name;
		__atomic_store_n(&j->nnames, h->name + 1, __ATOMIC_RELEASE);
	}
	put_hook(&j->hook[i], h);
	if (i >= j->nhooks)
		__atomic_store_n(&j->nhooks, i + 1, __ATOMIC_RELEASE);
}

void journal_publish_hook(struct session *s, uint32_t i, const struct ss_journal_hook *h)
{
	const struct ss_hook_name name = s->journal->name[h->name];

	put_counted(s->journal, i, h, &name);
	put_counted(s->shared, i, h, &name);
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

/* The target can have written anything: check every count and index against its bounds. */
static bool sane(struct session *s)
{
	struct ss_journal *j = s->journal;

	if (j->nhooks > SS_MAX_HOOKS || j->nislands > SS_MAX_ISLANDS || j->nnames > SS_MAX_NAMES)
		return false;
	for (uint32_t i = 0; i < j->nhooks; i++) {
		if (j->hook[i].length > SS_WINDOW || j->hook[i].insns > SS_MAX_INSNS ||
		    j->hook[i].name >= j->nnames)
			return false;
	}
	for (uint32_t i = 0; i < j->nnames; i++) {
		j->name[i].name[sizeof(j->name[i].name) - 1] = 0;
		j->name[i].module[sizeof(j->name[i].module) - 1] = 0;
	}
	return true;
}

int journal_load(struct session *s)
{
	/* A single copy, because the shared journal could change during the check. */
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
