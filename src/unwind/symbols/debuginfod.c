/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/vec.h"
#include "unwind/build_id.h"

#define LIBRARY	  "libdebuginfod.so.1"
#define VARIABLE  "DEBUGINFOD_URLS"
#define QUIET_S	  30	      /* a server that sends nothing for so long does not answer */
#define TOTAL_S	  600	      /* for all files together */
#define STEP	  4096	      /* bytes that count as an answer */
#define MOST	  (4ll << 30) /* bytes of a file */
#define SECOND_NS 1000000000ull
#define ID_MAX	  32

/* As in elfutils/debuginfod.h, whose package is thus not needed to build memprof. */
struct debuginfod_client;
static struct library {
	struct debuginfod_client *(*begin)(void);
	void (*end)(struct debuginfod_client *c);
	int (*find)(struct debuginfod_client *c, const unsigned char *id, int n, char **path);
	void (*set_progress)(struct debuginfod_client *c,
			     int (*fn)(struct debuginfod_client *c, long a, long b));
	void (*set_data)(struct debuginfod_client *c, void *data);
	void *(*data)(struct debuginfod_client *c);
	const char *(*url)(struct debuginfod_client *c);
} library; /* opened once, and never closed: threads of libcurl may still run */

/* A file that was asked for; @path NULL: the servers do not have it. */
struct answer {
	uint8_t id[ID_MAX];
	size_t n;
	char *path;
};

struct debuginfod {
	const char *urls;
	debuginfod_progress_fn *progress;
	void *ctx;
	struct debuginfod_client *client; /* NULL: not opened yet */
	VEC(struct answer) answers;
	struct debuginfod_result result;
	char failure[200];
	uint64_t quiet_ns; /* longest silence */
	uint64_t end_ns;   /* when all must be over */
	long mark;	   /* bytes of the current file at the last progress, */
	uint64_t mark_ns;  /* and when that was */
};

struct debuginfod *debuginfod_new(const char *urls, debuginfod_progress_fn *progress, void *ctx)
{
	struct debuginfod *d = calloc(1, sizeof(*d));

	if (d) {
		d->urls = urls;
		d->progress = progress;
		d->ctx = ctx;
	}
	return d;
}

void debuginfod_free(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		library.end(d->client);
	vec_for_each (&d->answers, a)
		free(a->path);
	vec_free(&d->answers);
	free(d);
}

struct debuginfod_result debuginfod_result(const struct debuginfod *d)
{
	return d->result;
}

/* No more files are asked for.  The first reason is kept. */
static void fail(struct debuginfod *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct debuginfod *d, const char *fmt, ...)
{
	va_list ap;

	if (d->result.failure)
		return;
	va_start(ap, fmt);
	vsnprintf(d->failure, sizeof(d->failure), fmt, ap);
	va_end(ap);
	d->result.failure = d->failure;
}

/* ------------------------------------------------------------------ opening -- */

static bool open_library(void)
{
	void *l = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	if (!l)
		return false;
	*(void **)&library.begin = dlsym(l, "debuginfod_begin");
	*(void **)&library.end = dlsym(l, "debuginfod_end");
	*(void **)&library.find = dlsym(l, "debuginfod_find_debuginfo");
	*(void **)&library.set_progress = dlsym(l, "debuginfod_set_progressfn");
	*(void **)&library.set_data = dlsym(l, "debuginfod_set_user_data");
	*(void **)&library.data = dlsym(l, "debuginfod_get_user_data");
	*(void **)&library.url = dlsym(l, "debuginfod_get_url");
	return library.begin && library.end && library.find && library.set_progress &&
	       library.set_data && library.data && library.url;
}

static uint64_t seconds(const char *variable, uint64_t usual)
{
	const char *value = getenv(variable);
	long n = value ? strtol(value, NULL, 10) : 0;

	return (n > 0 ? (uint64_t)n : usual) * SECOND_NS;
}

/* The signals that end a recording are blocked in its recorder. */
static bool interrupted(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
				     sigismember(&set, SIGHUP));
}

/* Return: other than 0 ends the query.  @a: bytes of the file; while no server has answered, the
 * number of calls, which never becomes as high as STEP. */
static int on_progress(struct debuginfod_client *client, long a, long total)
{
	struct debuginfod *d = library.data(client);
	int64_t most = a > total ? a : total;
	uint64_t now = mono_ns();

	if (a >= d->mark + STEP) {
		d->mark = a;
		d->mark_ns = now;
	}
	if (interrupted())
		fail(d, "interrupted");
	else if (now - d->mark_ns >= d->quiet_ns)
		fail(d, "no answer from %s for %llu s", d->urls,
		     (unsigned long long)(d->quiet_ns / SECOND_NS));
	else if (now >= d->end_ns)
		fail(d, "%s took too long (DEBUGINFOD_MAXTIME)", d->urls);
	else if (most >= MOST)
		fail(d, "%s sends a file of more than 4 GiB", d->urls);
	else if (d->progress && d->mark)
		d->progress(d->ctx, (uint64_t)a, total > 0 ? (uint64_t)total : 0);
	return d->result.failure != NULL;
}

/* A static program has no dynamic loader (getauxval(3)), and could not open a library that needs
 * another C library than its own. */
static bool open_client(struct debuginfod *d)
{
	if (!getauxval(AT_BASE))
		fail(d, "this memprof is a static program, which cannot open " LIBRARY);
	else if (!library.begin && !open_library())
		fail(d, "cannot open " LIBRARY " (Debian: package libdebuginfod1)");
	else
		d->client = library.begin();
	if (!d->client) {
		fail(d, LIBRARY " cannot be used");
		return false;
	}
	library.set_data(d->client, d);
	library.set_progress(d->client, on_progress);
	d->quiet_ns = seconds("DEBUGINFOD_TIMEOUT", QUIET_S);
	d->end_ns = mono_ns() + seconds("DEBUGINFOD_MAXTIME", TOTAL_S);
	return true;
}

/* ------------------------------------------------------------------ queries -- */

/* TLS libraries write to sockets without MSG_NOSIGNAL. */
static int find_without_sigpipe(struct debuginfod *d, const uint8_t *id, size_t n, char **path)
{
	const struct timespec at_once = {0};
	sigset_t pipe, before;
	int fd;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	setenv(VARIABLE, d->urls, 1);
	fd = library.find(d->client, id, (int)n, path);
	unsetenv(VARIABLE);
	if (!sigismember(&before, SIGPIPE))
		sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return fd;
}

static void count_found(struct debuginfod *d, int fd)
{
	struct stat st;

	d->result.found++;
	if (library.url(d->client) && !fstat(fd, &st))
		d->result.bytes += (uint64_t)st.st_size;
}

/* Return: a descriptor with @path set, or a negative errno. */
static int query(struct debuginfod *d, const uint8_t *id, size_t n, char **path)
{
	int fd;

	d->result.wanted++;
	if (d->result.failure || (!d->client && !open_client(d)))
		return -ECANCELED;
	d->mark = 0;
	d->mark_ns = mono_ns();
	fd = find_without_sigpipe(d, id, n, path);
	if (fd < 0) {
		if (fd != -ENOENT && fd != -EFBIG)
			fail(d, "%s: %s", d->urls, strerror(-fd));
		return fd;
	}
	if (elf_is_build(fd, id, n)) {
		count_found(d, fd);
		return fd;
	}
	d->result.wrong++;
	close(fd);
	free(*path);
	*path = NULL;
	return -ESTALE;
}

/* Return: as debuginfod_fetch(), for a file that was asked for. */
static int reopen(const struct answer *a, char **path)
{
	int fd = a->path ? open(a->path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return -ENOENT;
	*path = strdup(a->path);
	if (*path)
		return fd;
	close(fd);
	return -ENOMEM;
}

int debuginfod_fetch(struct debuginfod *d, const uint8_t *id, size_t n, char **path)
{
	struct answer answer = {.n = n};
	int fd;

	*path = NULL;
	if (!n || n > ID_MAX)
		return -EINVAL;
	vec_for_each (&d->answers, a) {
		if (a->n == n && !memcmp(a->id, id, n))
			return reopen(a, path);
	}
	fd = query(d, id, n, path);
	memcpy(answer.id, id, n);
	answer.path = fd < 0 ? NULL : strdup(*path);
	if (vec_push(&d->answers, answer))
		free(answer.path);
	return fd;
}
