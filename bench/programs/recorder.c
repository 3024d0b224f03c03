/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures the recorder's throughput: recorder LIVE MILLION-EVENTS FILE [CULL-MS [JOBS [RINGS]]].  The
 * main thread fills RINGS rings (default 1) with records as the agent writes them: it allocates LIVE
 * blocks, then frees random ones and allocates others.  If LIVE is 0, each block is freed before the
 * next one is allocated, and its end is noted in its own record.  Each ring has its own blocks, as if
 * every thread freed only what it allocated.  The next record is in a random ring, because threads
 * on different processors write at the same time.
 *
 * The recorder reads the rings with JOBS threads beside the reader (default 1), keeps the live table
 * and writes FILE, without blocks that live shorter than CULL-MS (default 0: with all).  Prints
 * events per second of the CPU time of all its threads, and of its busiest thread: so many it can
 * process if each thread has a processor.  Also bytes of the live table per block, and bytes of the
 * file per event.
 */
#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record/clock.h"
#include "record/recorder.h"

#define ONE_RING     (2u << 20)
#define OF_MANY	     (512u << 10)
#define MOST_RINGS   256u
#define MOST_THREADS 32u
#define SLOT	     65536u
#define ARENA	     65536u
#define STACKS	     200u
#define APART	     (1ull << 36) /* bytes of the address range of a ring's blocks */

/* What fills one ring. */
struct feeder {
	struct perf_event_mmap_page *page;
	uint64_t *data;
	uint64_t size, head, tail;
	uint64_t first;	     /* address of its first block */
	unsigned char *turn; /* for each live block: how often it was replaced, modulo 15 */
};

static uint64_t ticks, seed = 1;

static bool no_code(void *ctx)
{
	(void)ctx;
	return false;
}

static bool no_module(void *ctx, struct mp_module *m)
{
	(void)ctx;
	(void)m;
	return false;
}

static void put(struct feeder *f, uint64_t w0, uint64_t addr, uint64_t w3)
{
	uint64_t size = w0 >> 48, i = f->head / 8, mask = f->size / 8 - 1;

	while (f->head + size - f->tail > f->size) {
		f->tail = __atomic_load_n(&f->page->data_tail, __ATOMIC_ACQUIRE);
		if (f->head + size - f->tail > f->size)
			usleep(100);
	}
	if (!(ticks++ & 63))
		ticks = clock_ticks();
	f->data[i & mask] = w0;
	f->data[(i + 1) & mask] = ticks;
	f->data[(i + 2) & mask] = addr;
	if (size > 24)
		f->data[(i + 3) & mask] = w3;
	f->head += size;
	__atomic_store_n(&f->page->data_head, f->head, __ATOMIC_RELEASE);
}

static uint64_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 24;
}

static uint32_t stack_word(uint64_t n)
{
	return 1 + (uint32_t)(n % STACKS) * 4;
}

static void born(struct feeder *f, uint64_t i)
{
	put(f, MPR_ALLOC | 32ull << 48, f->first + i * 256 + f->turn[i] * 16,
	    (16 + i % 500) | (uint64_t)stack_word(i) << 32);
}

static void replace(struct feeder *f, uint64_t i)
{
	put(f, MPR_FREE | 24ull << 48, f->first + i * 256 + f->turn[i] * 16, 0);
	f->turn[i] = (f->turn[i] + 1) % 15;
	born(f, i);
}

/* An allocation whose record has its end, too. */
static void pair(struct feeder *f, uint64_t i)
{
	put(f, MPR_ALLOC | 4ull << MPR_ENDED_SHIFT | 32ull << 48, f->first + i % 16 * 256,
	    (16 + i % 500) | (uint64_t)stack_word(i) << 32);
}

/* The CPU time of all threads but the main one. */
struct usage {
	uint32_t n;
	struct {
		int tid;
		uint64_t ns;
	} at[MOST_THREADS];
};

static struct usage usage_now(void)
{
	DIR *d = opendir("/proc/self/task");
	struct usage u = {0};
	struct dirent *e;

	while (d && u.n < MOST_THREADS && (e = readdir(d))) {
		char path[300];
		unsigned long long ns = 0;
		FILE *file;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		u.at[u.n].tid = atoi(e->d_name);
		if (fscanf(file, "%llu", &ns) == 1)
			u.at[u.n++].ns = ns;
		fclose(file);
	}
	if (d)
		closedir(d);
	return u;
}

/* Return: the CPU time of all threads since @before; @most: that of the busiest one. */
static uint64_t usage_since(const struct usage *before, uint64_t *most)
{
	struct usage now = usage_now();
	uint64_t all = 0;

	*most = 0;
	for (uint32_t i = 0; i < now.n; i++) {
		uint64_t ns = now.at[i].ns;

		for (uint32_t k = 0; k < before->n; k++)
			ns -= before->at[k].tid == now.at[i].tid ? before->at[k].ns : 0;
		all += ns;
		*most = ns > *most ? ns : *most;
	}
	return all;
}

static uint64_t block_length(uint32_t rings, uint64_t ring_size)
{
	return 65536 + rings * (SLOT + 4096 + ring_size) + ARENA;
}

static struct ss_control *new_block(uint32_t rings, uint64_t ring_size)
{
	struct ss_control *c = mmap(NULL, block_length(rings, ring_size), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *arena;

	if (c == MAP_FAILED)
		exit(1);
	c->nslots = rings;
	c->slots = 65536;
	c->slot_stride = SLOT + 4096 + ring_size;
	c->slot_ring = SLOT;
	c->ring_size = ring_size;
	c->lossless = 1;
	c->arena = c->slots + rings * c->slot_stride;
	c->arena_words = ARENA / 8;
	c->journal = 4096;
	((struct ss_journal *)((char *)c + c->journal))->nnames = 1; /* of the only function */
	arena = (uint64_t *)((char *)c + c->arena);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct ss_stack *s = (void *)(arena + stack_word(i));

		*s = (struct ss_stack){.n = 3, .flags = SS_STACK_COMPLETE};
		s->pc[0] = 0x400000 + 16 * i;
		s->pc[1] = 0x410000;
		s->pc[2] = 0x420000;
	}
	return c;
}

/* Claims slot @i for a thread with @blocks live blocks. */
static struct feeder new_feeder(struct ss_control *c, uint32_t i, uint64_t blocks)
{
	struct ss_thread *slot = (void *)((char *)c + c->slots + i * c->slot_stride);
	struct feeder f = {.page = (void *)((char *)slot + c->slot_ring),
			   .size = c->ring_size,
			   .first = 0x550000000000 + i * APART,
			   .turn = calloc(blocks + 1, 1)};

	if (!f.turn)
		exit(1);
	f.data = (uint64_t *)((char *)f.page + 4096);
	__atomic_store_n(&slot->tid, i + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->tp, i + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&c->slots_claimed, c->slots_claimed + 1, __ATOMIC_RELEASE);
	return f;
}

static struct recorder_progress wait_for_events(struct recorder *r, uint64_t events)
{
	struct recorder_progress p;

	do {
		usleep(10000);
		p = recorder_progress(r);
	} while (p.events < events);
	return p;
}

/* The index has no modules, and addresses have no names. */
static void no_modules(void *ctx, struct mpf_writer *w)
{
	(void)ctx, (void)w;
}

static void no_names(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	(void)ctx, (void)w, (void)pc, (void)n;
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	uint32_t rings = (uint32_t)number(argc, argv, 6, 1);
	uint64_t ring_size = rings > 1 ? OF_MANY : ONE_RING;
	uint64_t events = number(argc, argv, 2, 0) * 1000000, live, each, all, most;
	struct recorder_config config = {.pid = getpid(),
					 .path = argc > 3 ? argv[3] : "",
					 .info = {.executable = "x", .cmdline = "x"},
					 .jobs = (unsigned int)number(argc, argv, 5, 1),
					 .code_changed = no_code,
					 .next_module = no_module};
	static struct feeder f[MOST_RINGS];
	struct usage before;
	struct mp_finish finish = {0};
	struct mp_losses losses;
	struct recorder_progress p;
	const struct recorder_ending ending = {.modules = no_modules, .symbolize = no_names};
	struct recorder *r;
	struct mp_err err = {0};

	if (argc < 4 || !rings || rings > MOST_RINGS) {
		fprintf(stderr,
			"recorder: LIVE MILLION-EVENTS FILE [CULL-MS [JOBS [RINGS, at most %u]]]\n",
			MOST_RINGS);
		return 2;
	}
	each = number(argc, argv, 1, 0) / rings;
	live = each * rings;
	config.info.cull_ns = number(argc, argv, 4, 0) * 1000000;
	config.block = new_block(rings, ring_size);
	config.layout = config.block;
	config.journal = (void *)((char *)config.block + config.block->journal);
	config.block_length = block_length(rings, ring_size);
	if (recorder_start(&config, &r, &err)) {
		fprintf(stderr, "recorder: %s\n", err.what);
		return 2;
	}
	for (uint32_t k = 0; k < rings; k++)
		f[k] = new_feeder(config.block, k, each);
	for (uint64_t i = 0; i < live; i++)
		born(&f[i % rings], i / rings);
	wait_for_events(r, live);
	before = usage_now();
	for (uint64_t n = 0; n < events; n += 2) {
		struct feeder *to = &f[rnd() % rings];

		if (live)
			replace(to, rnd() % each);
		else
			pair(to, n / 2);
	}
	p = wait_for_events(r, live + events);
	all = usage_since(&before, &most);
	recorder_stop(r, &finish, &losses, &ending);
	printf("{\"live\": %lu, \"events\": %lu, \"events_per_cpu_s\": %.0f, "
	       "\"events_per_busiest_s\": %.0f, \"bytes_per_live_block\": %.1f, "
	       "\"file_bytes_per_event\": %.2f}\n",
	       live, events, (double)events * 1e9 / (double)all,
	       (double)events * 1e9 / (double)most,
	       live ? (double)p.live_table_bytes / (double)live : 0,
	       (double)p.file_bytes / (double)(live + events));
	recorder_free(r);
	for (uint32_t k = 0; k < rings; k++)
		free(f[k].turn);
	return 0;
}
