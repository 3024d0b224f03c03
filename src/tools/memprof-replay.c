/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memprof-replay: repeats the allocations of a recording as fast as possible, with as many
 * threads, under the allocator it is started with:
 *
 *	memprof report rec.memprof --replay -o rec.replay
 *	LD_PRELOAD=libjemalloc.so.2 memprof-replay rec.replay
 *
 * Between start and end it makes no other calls to the allocator; its own tables are mappings.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "formats/chunk.h"
#include "formats/replay.h"
#include "lib/human.h"

#define PAGE 4096u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read as it is");

struct slot {
	char *block;
	uint64_t size;
	_Atomic uint32_t turn;
};

struct worker {
	pthread_t thread;
	struct replay_op *ops;
	uint64_t nops, waits, failed, wrong;
};

static struct replay {
	const struct replay_op *ops;
	struct replay_tail tail;
	struct slot *slots;
	struct worker worker[REPLAY_MAX_WORKERS];
	uint64_t touch;
	pthread_barrier_t start, end;
} replay;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "memprof-replay: %s: %s\n", what, why);
	exit(1);
}

static void *map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for the tables", strerror(errno));
	return p;
}

/* ------------------------------------------------------------------ file -- */

static bool is_sound(const struct replay_tail *t, uint64_t bytes)
{
	return !memcmp(t->magic, REPLAY_END, 8) && t->workers <= REPLAY_MAX_WORKERS &&
	       t->slots <= UINT32_MAX && t->ops <= bytes / sizeof(struct replay_op) &&
	       sizeof(struct replay_head) + t->ops * sizeof(struct replay_op) + sizeof(*t) == bytes;
}

/* The file is little-endian. */
static struct replay_op native(const struct replay_op *op)
{
	return (struct replay_op){.size = le64toh(op->size),
				  .slot = le32toh(op->slot),
				  .turn = le32toh(op->turn),
				  .worker = le16toh(op->worker),
				  .kind = op->kind,
				  .align = op->align};
}

static void load_tail(const char *from)
{
	struct replay_tail *t = &replay.tail;

	memcpy(t, from, sizeof(*t));
	t->ops = le64toh(t->ops);
	t->slots = le64toh(t->slots);
	t->workers = le64toh(t->workers);
	t->peak_bytes = le64toh(t->peak_bytes);
	t->live_bytes = le64toh(t->live_bytes);
	t->live_blocks = le64toh(t->live_blocks);
}

/* A recording has to be converted first: says how. */
static void refuse_recording(const char *path, const char *magic)
{
	if (memcmp(magic, CHUNK_FILE_MAGIC, 8) != 0)
		return;
	fprintf(stderr,
		"memprof-replay: %s is a recording; convert it first:\n"
		"  memprof report '%s' --replay -o '%s.replay'\n"
		"  memprof-replay '%s.replay'\n",
		path, path, path, path);
	exit(2);
}

static void load_events(const char *path)
{
	const struct replay_head *head;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *p;

	if (fd < 0 || fstat(fd, &st))
		die(path, strerror(errno));
	if ((uint64_t)st.st_size < sizeof(struct replay_head) + sizeof(struct replay_tail))
		die(path, "not a replay file");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die(path, strerror(errno));
	close(fd);
	head = (const struct replay_head *)p;
	refuse_recording(path, head->magic);
	load_tail(p + st.st_size - sizeof(replay.tail));
	if (memcmp(head->magic, REPLAY_MAGIC, 8) || le32toh(head->version) != REPLAY_VERSION ||
	    !is_sound(&replay.tail, (uint64_t)st.st_size))
		die(path, "not a replay file, cut off, or compressed");
	replay.ops = (const struct replay_op *)(p + sizeof(*head));
}

/* Copies the operations of each worker to an array of its own, in order. */
static void divide(void)
{
	for (uint64_t i = 0; i < replay.tail.ops; i++) {
		const struct replay_op op = native(&replay.ops[i]);

		if (op.worker >= replay.tail.workers || op.slot >= replay.tail.slots ||
		    op.kind < REPLAY_MALLOC || op.kind > REPLAY_FREE || op.align > 12)
			die("the replay file", "damaged");
		replay.worker[op.worker].nops++;
	}
	for (uint64_t w = 0; w < replay.tail.workers; w++) {
		replay.worker[w].ops = map(replay.worker[w].nops * sizeof(struct replay_op));
		replay.worker[w].nops = 0;
	}
	for (uint64_t i = 0; i < replay.tail.ops; i++) {
		const struct replay_op op = native(&replay.ops[i]);
		struct worker *w = &replay.worker[op.worker];

		w->ops[w->nops++] = op;
	}
	replay.slots = map(replay.tail.slots * sizeof(struct slot));
}

/* ------------------------------------------------------------------ work -- */

static uint64_t tag_of(const struct replay_op *op)
{
	return (uint64_t)op->slot * 0x9e3779b97f4a7c15ull + 1;
}

/* Return: whether the block still has its tag.  Its contents must not change while it is live. */
static bool has_tag(const struct slot *s, uint64_t size, uint64_t tag)
{
	return !s->block || !memcmp(s->block, &tag, size < 8 ? size : 8);
}

static void fill_slot(struct slot *s, uint64_t from, uint64_t tag)
{
	uint64_t most = s->size < replay.touch ? s->size : replay.touch;

	for (uint64_t at = from & ~(uint64_t)(PAGE - 1); at < most; at += PAGE)
		((volatile char *)s->block)[at] = 1;
	if (s->size)
		((volatile char *)s->block)[s->size - 1] = 1;
	memcpy(s->block, &tag, s->size < 8 ? s->size : 8);
}

static char *aligned(uint64_t size, uint8_t align)
{
	void *p;

	return posix_memalign(&p, (size_t)1 << align, size) ? NULL : p;
}

__attribute__((noinline)) static void replay_op(struct worker *w, const struct replay_op *op,
						struct slot *s)
{
	uint64_t tag = tag_of(op), old = s->size;
	char *p = NULL;

	switch (op->kind) {
	case REPLAY_MALLOC:
		p = malloc(op->size);
		break;
	case REPLAY_CALLOC:
		p = calloc(1, op->size);
		for (uint64_t i = 0; p && i < 8 && i < op->size; i++)
			w->wrong += p[i] != 0;
		break;
	case REPLAY_ALIGNED:
		p = aligned(op->size, op->align);
		w->wrong += ((uintptr_t)p & (((uintptr_t)1 << op->align) - 1)) != 0;
		break;
	case REPLAY_REALLOC:
		w->wrong += !has_tag(s, old, tag);
		/* realloc(p, 0) can free the block. */
		p = realloc(s->block, op->size ? op->size : 1);
		break;
	default:
		w->wrong += !has_tag(s, old, tag);
		free(s->block);
		s->block = NULL;
		s->size = 0;
		return;
	}
	w->failed += !p && op->size;
	s->block = p;
	s->size = p ? op->size : 0;
	if (op->kind == REPLAY_REALLOC)
		w->wrong += p && !has_tag(s, old < s->size ? old : s->size, tag);
	if (p)
		fill_slot(s, op->kind == REPLAY_REALLOC ? old : 0, tag);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&replay.start);
	for (uint64_t i = 0; i < w->nops; i++) {
		const struct replay_op *op = &w->ops[i];
		struct slot *s = &replay.slots[op->slot];
		uint32_t spins = 0;

		while (atomic_load_explicit(&s->turn, memory_order_acquire) != op->turn) {
			w->waits += !spins;
			if (++spins % 64 == 0)
				sched_yield();
		}
		replay_op(w, op, s);
		atomic_store_explicit(&s->turn, op->turn + 1, memory_order_release);
	}
	pthread_barrier_wait(&replay.end);
	return NULL;
}

/* ------------------------------------------------------------------ measures -- */

static uint64_t status_bytes(const char *key)
{
	char buf[4096], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	at = strstr(buf, key);
	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* Resets the kernel's peak resident size. */
static void reset_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "5", 1) != 1)
		die("/proc/self/clear_refs", strerror(errno));
	close(fd);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct result {
	double seconds;
	uint64_t before, peak, end, waits, failed, wrong;
};

static void start_workers(void)
{
	unsigned int n = (unsigned int)replay.tail.workers;

	if (pthread_barrier_init(&replay.start, NULL, n + 1) ||
	    pthread_barrier_init(&replay.end, NULL, n + 1))
		die("no barrier", strerror(errno));
	for (unsigned int i = 0; i < n; i++) {
		if (pthread_create(&replay.worker[i].thread, NULL, work, &replay.worker[i]))
			die("no thread", strerror(errno));
	}
}

static void run_workers(struct result *r)
{
	start_workers();
	r->before = status_bytes("VmRSS:");
	reset_peak();
	pthread_barrier_wait(&replay.start);
	r->seconds = now();
	pthread_barrier_wait(&replay.end);
	r->seconds = now() - r->seconds;
	r->end = status_bytes("VmRSS:");
	r->peak = status_bytes("VmHWM:");
	for (uint64_t w = 0; w < replay.tail.workers; w++) {
		pthread_join(replay.worker[w].thread, NULL);
		r->waits += replay.worker[w].waits;
		r->failed += replay.worker[w].failed;
		r->wrong += replay.worker[w].wrong;
	}
	r->peak -= r->before < r->peak ? r->before : r->peak;
	r->end -= r->before < r->end ? r->before : r->end;
}

static void print(const struct result *r, bool json)
{
	const struct replay_tail *t = &replay.tail;
	double ns = r->seconds * 1e9 / (t->ops ? (double)t->ops : 1);
	char buf[1024];
	int n;

	if (json)
		n = snprintf(buf, sizeof(buf),
			     "{\"operations\": %" PRIu64 ", \"threads\": %" PRIu64
			     ", \"seconds\": %.6f, \"ns_per_operation\": %.1f, \"waits\": %" PRIu64
			     ", \"peak_rss\": %" PRIu64 ", \"recorded_peak_bytes\": %" PRIu64
			     ", \"end_rss\": %" PRIu64 ", \"live_bytes\": %" PRIu64
			     ", \"live_blocks\": %" PRIu64 "}\n",
			     t->ops, t->workers, r->seconds, ns, r->waits, r->peak, t->peak_bytes,
			     r->end, t->live_bytes, t->live_blocks);
	else
		n = snprintf(buf, sizeof(buf),
			     "%" PRIu64 " operation%s by %" PRIu64
			     " thread%s in %.3f s: %.1f ns each; %" PRIu64
			     " waited for another thread\n"
			     "resident: %" PRIu64 " bytes at most (the program asked for %" PRIu64
			     " at its peak), %" PRIu64 " at the end (for %" PRIu64
			     " live in %" PRIu64 " block%s)\n",
			     t->ops, plural(t->ops), t->workers, plural(t->workers), r->seconds, ns,
			     r->waits, r->peak, t->peak_bytes, r->end, t->live_bytes,
			     t->live_blocks, plural(t->live_blocks));
	if (n < 0 || write(STDOUT_FILENO, buf, (size_t)n) != n)
		die("standard output", strerror(errno));
}

static void usage(int status)
{
	fputs(
	    "usage: memprof-replay [--json] [--touch BYTES] FILE\n"
	    "Repeats the allocations of a recording and prints how long they took and how much\n"
	    "memory was resident.  FILE is from memprof report RECORDING --replay -o FILE.\n"
	    "  --touch BYTES   write to each page of the first BYTES of a block (default 1048576)\n"
	    "Another allocator: LD_PRELOAD=libjemalloc.so.2 memprof-replay FILE\n",
	    status ? stderr : stdout);
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"touch", required_argument, NULL, 't'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct result r = {0};
	bool json = false;
	char *end;
	int c;

	replay.touch = 1u << 20;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'j') {
			json = true;
		} else if (c == 't') {
			replay.touch = strtoull(optarg, &end, 10);
			if (*optarg < '0' || *optarg > '9' || *end)
				usage(2);
		} else {
			usage(c == 'h' ? 0 : 2);
		}
	}
	if (optind + 1 != argc)
		usage(2);
	load_events(argv[optind]);
	divide();
	run_workers(&r);
	if (r.failed)
		die("the allocator", "returned NULL");
	if (r.wrong)
		die("the allocator", "changed the contents of a block, or returned a wrong one");
	print(&r, json);
	return 0;
}
