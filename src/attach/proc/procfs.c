/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/path.h"

int proc_slurp(int fd, char **text, size_t *length)
{
	size_t n = 0, cap = 16384;
	char *buf = malloc(cap);
	ssize_t got;

	if (!buf)
		return -ENOMEM;
	while ((got = read(fd, buf + n, cap - n - 1)) > 0) {
		n += (size_t)got;
		if (cap - n < 2) {
			char *more = realloc(buf, cap *= 2);

			if (!more) {
				got = -1;
				errno = ENOMEM;
				break;
			}
			buf = more;
		}
	}
	if (got < 0) {
		int e = errno;

		free(buf);
		return -e;
	}
	buf[n] = 0;
	*text = buf;
	if (length)
		*length = n;
	return 0;
}

int proc_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

static int slurp(const char *path, char **text, size_t *length)
{
	int fd = proc_open(path), err;

	if (fd < 0)
		return fd;
	err = proc_slurp(fd, text, length);
	close(fd);
	return err;
}

pid_t proc_of(pid_t pid)
{
	char path[64], one;
	struct tids tids;
	pid_t living = pid;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, &one, 1) >= 0 || errno != ENOENT || proc_tasks(pid, &tids))
		return pid;
	vec_for_each (&tids.list, tid) {
		snprintf(path, sizeof(path), "/proc/%d/exe", *tid);
		if (readlink(path, &one, 1) >= 0) {
			living = *tid;
			break;
		}
	}
	vec_free(&tids.list);
	return living;
}

/* Return: the value in a line "Name:\tvalue" of a status text; NULL if there is no such line. */
static const char *field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		if (!strncmp(p, name, n) && p[n] == ':')
			return p + n + 1 + strspn(p + n + 1, "\t ");
	}
	return NULL;
}

static uint64_t parse_number(const char *text, const char *name, int base)
{
	const char *p = field(text, name);

	return p ? strtoull(p, NULL, base) : 0;
}

int proc_status_parse(const char *text, struct proc_status *st)
{
	const char *p = field(text, "Name");

	memset(st, 0, sizeof(*st));
	if (!p)
		return -EINVAL;
	snprintf(st->name, sizeof(st->name), "%.*s", (int)strcspn(p, "\n"), p);
	p = field(text, "State");
	st->state = p ? *p : '?';
	st->tgid = (pid_t)parse_number(text, "Tgid", 10);
	st->ppid = (pid_t)parse_number(text, "PPid", 10);
	st->tracer = (pid_t)parse_number(text, "TracerPid", 10);
	st->threads = (uint32_t)parse_number(text, "Threads", 10);
	st->uid = (uint32_t)parse_number(text, "Uid", 10);
	st->gid = (uint32_t)parse_number(text, "Gid", 10);
	st->seccomp = (int)parse_number(text, "Seccomp", 10);
	st->filters = (uint32_t)parse_number(text, "Seccomp_filters", 10);
	st->no_new_privs = parse_number(text, "NoNewPrivs", 10);
	st->sig_pending = parse_number(text, "SigPnd", 16);
	st->shared_pending = parse_number(text, "ShdPnd", 16);
	st->sig_blocked = parse_number(text, "SigBlk", 16);
	st->sig_ignored = parse_number(text, "SigIgn", 16);
	st->sig_caught = parse_number(text, "SigCgt", 16);
	st->cap_effective = parse_number(text, "CapEff", 16);
	st->vm_locked_kb = parse_number(text, "VmLck", 10);
	st->no_memory = !field(text, "VmSize") && st->state != 'Z' && st->state != 'X';
	p = field(text, "NSpid");
	while (p && *p >= '0' && *p <= '9') {
		st->nstgid++;
		st->ns_pid = (pid_t)strtol(p, (char **)&p, 10);
		p += strspn(p, "\t ");
	}
	return 0;
}

int proc_status_read(pid_t pid, pid_t tid, struct proc_status *st)
{
	char path[64], *text;
	int err;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
	err = slurp(path, &text, NULL);
	if (err)
		return err;
	err = proc_status_parse(text, st);
	free(text);
	return err;
}

uint64_t proc_start_time(pid_t pid)
{
	char path[64], *text, *p;
	uint64_t start = 0;
	bool ended;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (slurp(path, &text, NULL))
		return 0;
	/* The name is in parentheses and can contain anything: count fields after the last ')'. */
	p = strrchr(text, ')');
	ended = p && (p[2] == 'Z' || p[2] == 'X');
	for (int i = 2; p && i < 22; i++) {
		p = strchr(p + 1, ' ');
		if (p && i == 19 && strtoul(p, NULL, 10) > 1)
			ended = false; /* only its main thread has ended */
	}
	if (p && !ended) /* otherwise a zombie that has not been waited for */
		start = strtoull(p, NULL, 10);
	free(text);
	return start;
}

int proc_tasks(pid_t pid, struct tids *tids)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	memset(tids, 0, sizeof(*tids));
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((e = readdir(d))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid > 0 && vec_push(&tids->list, tid)) {
			closedir(d);
			vec_free(&tids->list);
			return -ENOMEM;
		}
	}
	closedir(d);
	return 0;
}

int proc_children(pid_t pid, struct tids *children)
{
	struct tids tids;
	int ret = proc_tasks(pid, &tids);

	memset(children, 0, sizeof(*children));
	if (ret)
		return ret;
	vec_for_each (&tids.list, tid) {
		char path[64];
		pid_t child;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, *tid);
		f = fopen(path, "re");
		while (f && !ret && fscanf(f, "%d", &child) == 1)
			ret = vec_push(&children->list, child);
		if (f)
			fclose(f);
	}
	vec_free(&tids.list);
	if (ret)
		vec_free(&children->list);
	return ret;
}

int proc_memory_read(pid_t pid, struct proc_memory *m)
{
	char path[64], *text;
	int err;

	memset(m, 0, sizeof(*m));
	snprintf(path, sizeof(path), "/proc/%d/status", proc_of(pid));
	err = slurp(path, &text, NULL);
	if (err)
		return err;
	m->rss = parse_number(text, "VmRSS", 10) * 1024;
	m->anonymous = parse_number(text, "RssAnon", 10) * 1024;
	m->file = (parse_number(text, "RssFile", 10) + parse_number(text, "RssShmem", 10)) * 1024;
	m->swap = parse_number(text, "VmSwap", 10) * 1024;
	m->address_space = parse_number(text, "VmSize", 10) * 1024;
	free(text);
	return 0;
}

int proc_rollup_read(pid_t pid, struct proc_rollup *r)
{
	char path[64], *text;
	int err;

	memset(r, 0, sizeof(*r));
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", proc_of(pid));
	err = slurp(path, &text, NULL);
	if (err)
		return err;
	r->rss = parse_number(text, "Rss", 10) * 1024;
	r->anonymous = parse_number(text, "Anonymous", 10) * 1024;
	r->huge = parse_number(text, "AnonHugePages", 10) * 1024;
	r->swap = parse_number(text, "Swap", 10) * 1024;
	free(text);
	return 0;
}

int proc_cmdline(pid_t pid, char *buf, size_t size)
{
	char path[64], *text = NULL;
	size_t length = 0, n = 0;
	int err;

	buf[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", proc_of(pid));
	err = slurp(path, &text, &length);
	if (err)
		return err;
	/* setproctitle() leaves empty arguments after the title. */
	while (length > 1 && !text[length - 1] && !text[length - 2])
		length--;
	for (size_t i = 0; i < length && n + 1 < size; i += strlen(text + i) + 1) {
		bool quote = text[i + strcspn(text + i, " \t\"'\\")] || !text[i];
		int put = snprintf(buf + n, size - n, quote ? "%s\"%s\"" : "%s%s", i ? " " : "",
				   text + i);

		n += (size_t)put;
	}
	free(text);
	return 0;
}

int proc_exe(pid_t pid, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_of(pid));
	n = readlink(path, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	return 0;
}

/* Is @path, as process @pid sees it, the file that the process executes? */
static bool is_executed(pid_t pid, const char *path)
{
	char full[PATH_MAX + 32], link[64];
	struct stat file, exe;

	snprintf(link, sizeof(link), "/proc/%d/exe", proc_of(pid));
	if ((size_t)snprintf(full, sizeof(full), "/proc/%d/root%s", proc_of(pid), path) >=
	    sizeof(full))
		return false;
	return !stat(full, &file) && !stat(link, &exe) && file.st_dev == exe.st_dev &&
	       file.st_ino == exe.st_ino;
}

/* Reads argv[0], up to a blank: setproctitle() puts more behind it.  Return: whether there is one. */
static bool first_argument(pid_t pid, char *buf, size_t size)
{
	char path[64], *text = NULL;
	size_t length = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", proc_of(pid));
	if (slurp(path, &text, &length))
		return false;
	snprintf(buf, size, "%.*s", length ? (int)strcspn(text, " ") : 0, length ? text : "");
	free(text);
	return *buf;
}

bool proc_called(pid_t pid, const char *exe, char *buf, size_t size)
{
	static const char *const folders[] = {"/usr/local/bin",	 "/usr/bin",  "/bin",
					      "/usr/local/sbin", "/usr/sbin", "/sbin"};
	char argument[PATH_MAX], path[2 * PATH_MAX];
	const char *name, *own = strrchr(exe, '/');
	bool is;

	if (!own || !first_argument(pid, argument, sizeof(argument)))
		return false;
	name = path_base(argument);
	if (!*name || strlen(name) >= size || !strcmp(name, own + 1))
		return false;
	snprintf(path, sizeof(path), "%.*s/%s", (int)(own - exe), exe, name);
	is = (*argument == '/' && is_executed(pid, argument)) || is_executed(pid, path);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !is; i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		is = is_executed(pid, path);
	}
	if (is)
		strcpy(buf, name);
	return is;
}

struct proc_load proc_load_read(void)
{
	struct proc_load load = {0};
	FILE *f = fopen("/proc/loadavg", "re");

	if (!f)
		return load;
	if (fscanf(f, "%*s %*s %*s %" SCNu32 "/%*u %d", &load.running, &load.newest) != 2)
		load = (struct proc_load){0};
	fclose(f);
	return load;
}

void proc_program_read(pid_t pid, struct proc_program *p)
{
	*p = (struct proc_program){0};
	if (proc_exe(pid, p->executable, sizeof(p->executable)))
		p->executable[0] = 0;
	else if (!proc_called(pid, p->executable, p->called, sizeof(p->called)))
		p->called[0] = 0;
}
