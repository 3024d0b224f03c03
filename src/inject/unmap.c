/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Removes whatever part of memprof's memory exists in a target: a recorder can have been killed
 * between any two steps of opening or closing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inject/find.h"
#include "inject/internal.h"
#include "lib/fault.h"

static int unmap(struct remote *r, uint64_t addr, uint64_t length)
{
	uint64_t args[6] = {addr, length};
	long ret = 0;
	int err = remote_syscall(r, r->t->arch->nr.munmap, args, &ret);

	return err ? err : (int)ret;
}

/* Is it memprof's mapping?  The journal has the address where memory was going to be mapped.  If
 * the recorder died before that, the program can have mapped something else there. */
static bool is_ours(const struct maps *maps, uint64_t addr, uint64_t length, bool exec)
{
	const struct map *m = maps_find(maps, addr);

	return m && addr + length <= m->end && !m->ino && !m->shared && m->read &&
	       m->exec == exec && m->write != exec;
}

/* An island begins with a descriptor or is still empty; its code can be Thumb (bit 0). */
static bool is_island(struct target *t, const struct maps *maps, uint64_t addr, uint64_t length)
{
	uint64_t first;

	return is_ours(maps, addr, length, true) &&
	       !mem_read(&t->mem, addr, &first, sizeof(first)) &&
	       (!first || (first & ~1ull) == addr + SLOT_RELOCATED);
}

static bool is_block(pid_t pid, const char *fd)
{
	char path[300], to[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", proc_of(pid), fd);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = 0;
	return session_is_path(to);
}

int session_leaked_fd(pid_t pid)
{
	int found = -1;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", proc_of(pid));
	d = opendir(path);
	while (found < 0 && d && (e = readdir(d))) {
		if (e->d_name[0] != '.' && is_block(pid, e->d_name))
			found = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

int session_close_leaked(struct remote *r)
{
	int fd = session_leaked_fd(r->t->pid), err;
	uint64_t args[6] = {(uint64_t)fd};
	long ret = 0;

	if (fd < 0)
		return 0;
	err = remote_syscall(r, r->t->arch->nr.close, args, &ret);
	return err ? err : (int)ret;
}

int session_unmap(struct remote *r, const struct ss_journal *j)
{
	uint64_t text = j->gate_addr - j->agent_addr;
	bool island[SS_MAX_ISLANDS], agent, gate;
	const struct maps *maps;
	int ret = target_maps(r->t, &maps);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < j->nislands; i++)
		island[i] = is_island(r->t, maps, j->island[i].addr, j->island[i].length);
	agent = is_ours(maps, j->agent_addr, text, true);
	/* One mapping, or two after a part of it was marked to be wiped on fork. */
	gate = j->agent_length - text > SS_GATE_BYTES &&
	       is_ours(maps, j->gate_addr, SS_GATE_BYTES, false) &&
	       is_ours(maps, j->gate_addr + SS_GATE_BYTES, j->agent_length - text - SS_GATE_BYTES,
		       false);
	for (uint32_t i = 0; i < j->nislands && !ret; i++) {
		if (island[i])
			ret = unmap(r, j->island[i].addr, j->island[i].length);
		fault_point("close-island");
	}
	if (!ret && agent)
		ret = unmap(r, j->agent_addr, text);
	fault_point("close-agent");
	if (!ret && gate)
		ret = unmap(r, j->gate_addr, j->agent_length - text);
	fault_point("close-gate");
	/* Last, so that a later detach finds the journal if this one is interrupted. */
	if (!ret && j->session_addr)
		ret = unmap(r, j->session_addr, j->session_length);
	fault_point("close-block");
	return ret;
}
