/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/look_at_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/pagemap.h"
#include "attach/proc/procfs.h"
#include "attach/proc/smaps.h"
#include "lib/deadline.h"
#include "record/aggregator.h"

#define USAGE_NS 10000000000ull

static bool has_name(const struct aggregator *a, const struct slot_state *slot)
{
	return slot->written_tid == slot->tid && slot->written_piece == a->piece.number;
}

static void put_thread_name(struct aggregator *a, struct slot_state *slot)
{
	struct proc_status st;

	if (proc_status_read(a->config->pid, (pid_t)slot->tid, &st) ||
	    (has_name(a, slot) && !strcmp(slot->written_name, st.name)))
		return;
	mpf_put_thread(a->file, slot->tid, st.name);
	slot->written_tid = slot->tid;
	slot->written_piece = a->piece.number;
	snprintf(slot->written_name, sizeof(slot->written_name), "%s", st.name);
}

/* Puts the names of new threads, and the new names of others.  At most a hundredth of the time is spent on
 * the latter. */
static void put_thread_names(struct aggregator *a, uint64_t now)
{
	bool all = now >= a->next_names_ns;
	uint64_t before = mono_ns();

	for (uint32_t i = 0; i < a->layout->nslots; i++) {
		struct slot_state *slot = &a->slot[i];

		if (slot->tid && (all || !has_name(a, slot)))
			put_thread_name(a, slot);
	}
	if (all)
		a->next_names_ns = now + (mono_ns() - before) * 100;
}

void put_names(const struct aggregator *a, struct mpf_writer *file)
{
	for (uint32_t i = 0; i < a->layout->nslots; i++) {
		const struct slot_state *st = &a->slot[i];

		if (st->tid && st->written_tid == st->tid)
			mpf_put_thread(file, st->tid, st->written_name);
	}
}

static void add_span(struct aggregator *a, int fd, uint64_t addr, uint64_t length, bool private)
{
	uint64_t present = pagemap_present(fd, addr, addr + length);

	a->session.session_rss += present;
	a->session.session_anonymous += private ? present : 0;
	a->session.session_address_space += length;
}

/* Return: whether the session block is mapped in the target: not before the session is open nor
 * after it is closed. */
static bool is_block_mapped(const struct recorder_config *c)
{
	const struct ss_journal *j = c->journal;
	char path[MAP_FILES_PATH];
	struct stat st;

	map_files_path(c->pid, j->session_addr, j->session_addr + j->session_length, path);
	return j->session_addr && (!lstat(path, &st) || errno != ENOENT);
}

/* Measures memprof's share of the target's memory: the block, the agent and the islands.  At most a
 * hundredth of the time is spent on it. */
static void look_at_session(struct aggregator *a, uint64_t now)
{
	const struct ss_journal *j = a->config->journal;
	uint32_t islands = __atomic_load_n(&j->nislands, __ATOMIC_ACQUIRE);
	uint64_t before = mono_ns();
	char path[64];
	int fd;

	if (!is_block_mapped(a->config)) {
		a->session = (struct mp_sample){0};
		return;
	}
	if (now < a->next_session_ns)
		return;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_of(a->config->pid));
	fd = proc_open(path);
	if (fd < 0)
		return;
	a->session = (struct mp_sample){0};
	add_span(a, fd, j->session_addr, j->session_length, false);
	add_span(a, fd, j->agent_addr, j->agent_length, true);
	for (uint32_t i = 0; i < islands && i < SS_MAX_ISLANDS; i++)
		add_span(a, fd, j->island[i].addr, j->island[i].length, true);
	close(fd);
	a->next_session_ns = now + (mono_ns() - before) * 100;
}

static uint64_t without(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

static void put_memory(struct aggregator *a, uint64_t now)
{
	const struct mp_sample *own = &a->session;
	struct mp_sample s;
	struct proc_memory m;

	look_at_session(a, now);
	if (proc_memory_read(a->config->pid, &m))
		return;
	s = *own;
	s.time_ns = now;
	s.rss = without(m.rss, own->session_rss);
	s.anonymous = without(m.anonymous, own->session_anonymous);
	s.file = without(m.file, own->session_rss - own->session_anonymous);
	s.swap = m.swap;
	s.address_space = without(m.address_space, own->session_address_space);
	mpf_put_sample(a->file, &s);
	a->sample = s;
}

/* At most every ten seconds, and at most a hundredth of the time is spent on it (see
 * map_usages_read()). */
static void put_map_usage(struct aggregator *a, uint64_t now)
{
	uint64_t before = mono_ns(), took, anonymous = 0;
	struct map_usages list;

	if (now < a->next_usage_ns || map_usages_read(a->config->pid, &list))
		return;
	took = mono_ns() - before;
	a->next_usage_ns = now + (took * 100 > USAGE_NS ? took * 100 : USAGE_NS);
	vec_for_each (&list.list, u) {
		struct mp_map_usage usage = {now,	   u->start, u->end,  u->rss,
					     u->anonymous, u->swap,  u->prot, u->path};

		mpf_put_map_usage(a->file, &usage);
		if (!u->path || !*u->path || !strncmp(u->path, "[anon", 5))
			anonymous += u->anonymous;
	}
	a->now.anonymous = anonymous;
	map_usages_free(&list);
}

void look_at_target(struct aggregator *a, uint64_t now)
{
	put_thread_names(a, now);
	if (a->end_ns)
		return;
	put_memory(a, now);
	put_map_usage(a, now);
}
