/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/find.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "attach/proc/maps.h"

bool session_is_path(const char *path)
{
	static const char start[] = "/memfd:" SS_NAME;

	return !strncmp(path, start, sizeof(start) - 1);
}

uint64_t session_find(const struct maps *maps, uint64_t *length)
{
	vec_for_each (&maps->list, m) {
		if (session_is_path(m->path) && !m->offset) {
			*length = m->end - m->start;
			return m->start;
		}
	}
	return 0;
}

bool session_read(pid_t pid, uint64_t *addr, struct ss_control *c, struct ss_journal *j)
{
	uint64_t length;
	struct maps maps;
	struct mem mem;
	bool ok;

	if (maps_read(pid, &maps))
		return false;
	*addr = session_find(&maps, &length);
	maps_free(&maps);
	if (!*addr || mem_open(&mem, pid))
		return false;
	ok = !mem_read(&mem, *addr, c, sizeof(*c)) && c->magic == SS_MAGIC &&
	     c->version == SS_VERSION && !mem_read(&mem, *addr + c->journal, j, sizeof(*j));
	mem_close(&mem);
	if (ok) {
		j->recording[sizeof(j->recording) - 1] = 0;
		j->control[sizeof(j->control) - 1] = 0;
	}
	return ok;
}

bool session_is_of(const struct ss_journal *j, pid_t pid, uint64_t addr)
{
	/* 0: its recorder died before it had entered the address. */
	return pid != j->recorder_pid && (!j->session_addr || j->session_addr == addr);
}

bool session_forked(const struct mem *mem, pid_t pid, uint64_t addr, const struct ss_journal *j)
{
	struct ss_gate gate;

	return session_is_of(j, pid, addr) && j->state != SS_OPENING &&
	       !mem_read(mem, j->gate_addr, &gate, sizeof(gate)) && !gate.session_addr;
}

bool session_is_forked(pid_t pid)
{
	struct ss_control head;
	struct ss_journal j;
	struct mem mem;
	uint64_t addr;
	bool forked;

	if (!session_read(pid, &addr, &head, &j) || mem_open(&mem, pid))
		return false;
	forked = session_forked(&mem, pid, addr, &j);
	mem_close(&mem);
	return forked;
}

bool session_id_of(pid_t pid, struct session_id *id)
{
	const struct map *m;
	uint64_t addr, length;
	struct maps maps;

	if (maps_read(pid, &maps))
		return false;
	addr = session_find(&maps, &length);
	m = addr ? maps_find(&maps, addr) : NULL;
	if (m)
		*id = (struct session_id){m->ino, m->dev_major, m->dev_minor};
	maps_free(&maps);
	return m != NULL;
}

bool session_id_equal(const struct session_id *a, const struct session_id *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Decided by the address of the block if that is known, because the journal's pid is of the
 * recorder's pid namespace. */
bool session_is_recorder(pid_t pid)
{
	struct ss_control head;
	struct ss_journal j;
	uint64_t addr;

	return session_read(pid, &addr, &head, &j) &&
	       (j.session_addr ? j.session_addr != addr : j.recorder_pid == pid);
}

/* Return: the recorded process; 0 if none is visible. */
static pid_t recorded_by(pid_t recorder)
{
	struct session_id id, its;
	pid_t recorded = 0;
	struct dirent *e;
	DIR *d = session_id_of(recorder, &id) ? opendir("/proc") : NULL;

	while (!recorded && d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && pid != recorder && session_id_of(pid, &its) &&
		    session_id_equal(&its, &id) && !session_is_recorder(pid) &&
		    !session_is_forked(pid))
			recorded = pid;
	}
	if (d)
		closedir(d);
	return recorded;
}

int session_refuse_recorder(pid_t pid, enum mp_exit exit, struct mp_err *err)
{
	pid_t recorded;

	if (!session_is_recorder(pid))
		return 0;
	recorded = recorded_by(pid);
	if (recorded)
		return mp_fail(err, exit, -EINVAL,
			       "process %d is the recorder of process %d and is not recorded "
			       "itself; see: memprof status -p %d",
			       pid, recorded, recorded);
	return mp_fail(
	    err, exit, -EINVAL,
	    "process %d is a memprof recorder and is not recorded itself; see: memprof status",
	    pid);
}
