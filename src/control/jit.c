/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/jit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "attach/proc/root_file.h"
#include "attach/proc/stat.h"
#include "control/notices.h"
#include "control/state.h"
#include "lib/path.h"
#include "lib/printable.h"
#include "unwind/symbols/jit_names.h"
#include "unwind/symbols/jitdump.h"
#include "unwind/symbols/perf_map.h"

#define SLACK_S 2 /* how much the times of a process and of a file can differ */

typedef int read_file(int fd, uint64_t since, struct jit_names *names, struct jit_read *r);

static const char *map_path(const struct jit_files *f, char path[64])
{
	snprintf(path, 64, "/tmp/perf-%d.map", f->pid);
	return path;
}

bool jit_files_is_dump(const struct jit_files *f, const char *path)
{
	char name[64];

	snprintf(name, sizeof(name), "jit-%d.dump", f->pid);
	return *path == '/' && !strcmp(path_base(path), name);
}

/* Return: the path under which the process has mapped a jitdump, now or earlier, or NULL. */
static const char *dump_path(struct recording *rec)
{
	const char *found = NULL;

	pthread_mutex_lock(&rec->lock);
	vec_for_each (&rec->s.tables.paths, path) {
		if (jit_files_is_dump(&rec->jit, *path))
			found = *path;
	}
	pthread_mutex_unlock(&rec->lock);
	return found;
}

static void note_file(const struct jit_files *f, const char *path, struct jit_file *file)
{
	struct stat st;
	int fd = path ? root_file_open(f->root, path, f->uid, &st) : -ENOENT;

	if (fd < 0)
		return;
	*file = (struct jit_file){st.st_dev, st.st_ino, (uint64_t)st.st_size};
	close(fd);
}

void jit_files_open(struct jit_files *f, pid_t pid)
{
	struct proc_status status;
	struct proc_stat stat;

	*f = (struct jit_files){.root = root_open(pid)};
	if (f->root < 0 || proc_status_read(pid, 0, &status) || proc_stat_read(pid, &stat))
		return;
	f->pid = status.ns_pid;
	f->uid = status.uid;
	f->begun = time(NULL) - (int64_t)(proc_stat_age_ms(&stat) / 1000);
}

void recording_note_jit(struct recording *rec)
{
	struct jit_files *f = &rec->jit;
	char path[64];

	jit_files_open(f, rec->t->pid);
	/* Stacks that an earlier recorder has left can be older than this moment. */
	if (rec->resumed || !f->pid)
		return;
	note_file(f, map_path(f, path), &f->map);
	note_file(f, dump_path(rec), &f->dump);
}

void jit_files_close(struct jit_files *f)
{
	if (f->root >= 0)
		close(f->root);
	f->root = -1;
}

/* Return: how many bytes of the file are from before the recording.  If the program has begun a new
 * file, none. */
static uint64_t bytes_before(const struct jit_file *file, const struct stat *st)
{
	bool same = file->dev == st->st_dev && file->ino == st->st_ino;

	return same && (uint64_t)st->st_size >= file->bytes ? file->bytes : 0;
}

static void report_unused(const struct notices *n, const char *path, int error)
{
	static const struct {
		int error;
		const char *why;
	} reason[] = {{-ELOOP, "it is a symbolic link"},
		      {-EINVAL, "it is not a regular file"},
		      {-EPERM, "another user than that of the process owns it"},
		      {-ESTALE, "it is older than the process"},
		      {-EPROTO, "it is not a jitdump of this machine"}};
	const char *why = strerror(-error);

	for (size_t i = 0; i < sizeof(reason) / sizeof(reason[0]); i++) {
		if (reason[i].error == error)
			why = reason[i].why;
	}
	if (n && error != -ENOENT)
		notice(n, "%s is not used for names of JIT code: %s", printable(path), why);
}

static void report_read(const struct notices *n, const char *path, const struct jit_read *r)
{
	if (n && r->invalid)
		notice(n, "%s: %llu invalid entr%s skipped", printable(path),
		       (unsigned long long)r->invalid, r->invalid == 1 ? "y was" : "ies were");
	if (n && r->partial)
		notice(n, "%s is too large: only a part was read, names from it end in \"...\"",
		       printable(path));
}

static void read_names(const struct jit_files *f, const char *path, const struct jit_file *file,
		       read_file *read, bool mapped, struct jit_names *names,
		       const struct notices *n)
{
	struct jit_read r = {0};
	struct stat st;
	int fd = root_file_open(f->root, path, f->uid, &st), error = fd < 0 ? fd : 0;

	/* A file that the process has not mapped can be from another one that had its id. */
	if (!error && !mapped && st.st_mtime + SLACK_S < f->begun)
		error = -ESTALE;
	if (!error)
		error = read(fd, bytes_before(file, &st), names, &r);
	if (error)
		report_unused(n, path, error);
	else
		report_read(n, path, &r);
	if (fd >= 0)
		close(fd);
}

/* Return: those of the addresses that are in no file, for jit_names_new(); to be freed. */
static uint64_t *in_no_file(const struct symbols *symbols, const uint64_t *pc, uint64_t count,
			    size_t *n)
{
	uint64_t *list = malloc((count + 1) * sizeof(*list));

	*n = 0;
	for (uint64_t i = 0; list && i < count; i++) {
		if (!symbols_in_file(symbols, pc[i]))
			list[(*n)++] = mp_address_in_process(ss_pc_instruction(pc[i]));
	}
	return list;
}

void jit_files_name(const struct jit_files *f, const char *dump, struct symbols *symbols,
		    const uint64_t *pc, uint64_t count, const struct notices *n)
{
	struct jit_names *names = NULL;
	char map[64];
	uint64_t *list;
	size_t missing;

	if (!symbols || f->root < 0 || !f->pid)
		return;
	list = in_no_file(symbols, pc, count, &missing);
	if (list && missing)
		names = jit_names_new(list, missing);
	free(list);
	if (!names)
		return;
	read_names(f, map_path(f, map), &f->map, perf_map_read, false, names, n);
	if (dump)
		read_names(f, dump, &f->dump, jitdump_read, true, names, n);
	symbols_set_jit(symbols, names);
}

void recording_name_jit(struct recording *rec, struct symbols *symbols, const uint64_t *pc,
			uint64_t count, const struct notices *n)
{
	jit_files_name(&rec->jit, dump_path(rec), symbols, pc, count, n);
}
