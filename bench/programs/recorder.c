/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures the recorder's throughput: recorder LIVE MILLION-EVENTS FILE [CULL-MS].  The main thread
 * fills a ring with records as the agent writes them: it allocates LIVE blocks, then frees random
 * ones and allocates others.  If LIVE is 0, each block is freed before the next one is allocated, and
 * its end is noted in its own record.  The recorder reads the ring, keeps the live table and writes
 * FILE, without blocks that live shorter than CULL-MS (default 0: with all).  Prints
 * events per second of the recorder's CPU time (of reader and aggregator together, and of the
 * aggregator alone), bytes of the live table per block, and bytes of the file per event.
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

#define RING   (2u << 20)
#define SLOT   65536u
#define LENGTH (65536u + SLOT + 4096u + RING + 65536u)
#define STACKS 200u

struct feeder {
	struct ss_control *block;
	struct perf_event_mmap_page *page;
	uint64_t *data;
	uint64_t head, tail;
	uint64_t time, seed;
};

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
	uint64_t size = w0 >> 48, i = f->head / 8, mask = RING / 8 - 1;

	while (f->head + size - f->tail > RING) {
		__atomic_store_n(&f->page->data_head, f->head, __ATOMIC_RELEASE);
		f->tail = __atomic_load_n(&f->page->data_tail, __ATOMIC_ACQUIRE);
		if (f->head + size - f->tail > RING)
			usleep(100);
	}
	if (!(f->time++ & 63))
		f->time = clock_ticks();
	f->data[i & mask] = w0;
	f->data[(i + 1) & mask] = f->time;
	f->data[(i + 2) & mask] = addr;
	if (size > 24)
		f->data[(i + 3) & mask] = w3;
	f->head += size;
	if (!(f->head & 4095))
		__atomic_store_n(&f->page->data_head, f->head, __ATOMIC_RELEASE);
}

static uint64_t rnd(struct feeder *f)
{
	f->seed = f->seed * 6364136223846793005ull + 1442695040888963407ull;
	return f->seed >> 24;
}

static uint32_t stack_word(uint64_t n)
{
	return 1 + (uint32_t)(n % STACKS) * 4;
}

static void born(struct feeder *f, uint64_t i, unsigned int turn)
{
	put(f, MPR_ALLOC | 32ull << 48, 0x550000000000 + i * 256 + turn * 16,
	    (16 + i % 500) | (uint64_t)stack_word(i) << 32);
}

/* An allocation whose record has its end, too. */
static void pair(struct feeder *f, uint64_t i)
{
	put(f, MPR_ALLOC | 4ull << MPR_ENDED_SHIFT | 32ull << 48, 0x550000000000 + i % 16 * 256,
	    (16 + i % 500) | (uint64_t)stack_word(i) << 32);
}

static void gone(struct feeder *f, uint64_t i, unsigned int turn)
{
	put(f, MPR_FREE | 24ull << 48, 0x550000000000 + i * 256 + turn * 16, 0);
}

/* Sums the ns that all threads but the main one have run: @all; @most: those of the busiest. */
static void cpu_of_others(uint64_t *most, uint64_t *all)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	*most = *all = 0;
	while (d && (e = readdir(d))) {
		char path[300];
		unsigned long long ns = 0;
		FILE *file;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%llu", &ns) == 1) {
			*all += ns;
			*most = ns > *most ? ns : *most;
		}
		fclose(file);
	}
	if (d)
		closedir(d);
}

static struct ss_control *new_block(void)
{
	struct ss_control *c =
	    mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *arena;

	if (c == MAP_FAILED)
		exit(1);
	c->nslots = 1;
	c->slots = 65536;
	c->slot_stride = SLOT + 4096 + RING;
	c->slot_ring = SLOT;
	c->ring_size = RING;
	c->lossless = 1;
	c->arena = 65536 + SLOT + 4096 + RING;
	c->arena_words = 8192;
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

/* The index has no modules, and addresses have no names. */
static void no_modules(void *ctx, struct mpf_writer *w)
{
	(void)ctx, (void)w;
}

static void no_names(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	(void)ctx, (void)w, (void)pc, (void)n;
}

int main(int argc, char **argv)
{
	uint64_t live = argc > 3 ? strtoull(argv[1], NULL, 0) : 0, most[2], all[2];
	uint64_t events = argc > 3 ? strtoull(argv[2], NULL, 0) * 1000000 : 0;
	struct feeder f = {.block = new_block(), .seed = 1};
	struct recorder_config config = {.block = f.block,
					 .layout = f.block,
					 .journal = (void *)((char *)f.block + f.block->journal),
					 .block_length = LENGTH,
					 .pid = getpid(),
					 .path = argc > 3 ? argv[3] : "",
					 .info = {.executable = "x", .cmdline = "x"},
					 .code_changed = no_code,
					 .next_module = no_module};
	struct ss_thread *slot = (void *)((char *)f.block + f.block->slots);
	unsigned char *turn = calloc(live ? live : 1, 1);
	struct mp_finish finish = {0};
	struct mp_losses losses;
	struct recorder_progress p;
	const struct recorder_ending ending = {.modules = no_modules, .symbolize = no_names};
	struct recorder *r;
	struct mp_err err = {0};

	if (argc > 4)
		config.info.cull_ns = strtoull(argv[4], NULL, 0) * 1000000;
	if (argc < 4 || !turn || recorder_start(&config, &r, &err)) {
		fprintf(stderr, "recorder: %s\n",
			err.what[0] ? err.what : "LIVE MILLION-EVENTS FILE [CULL-MS]");
		return 2;
	}
	f.page = (void *)((char *)slot + f.block->slot_ring);
	f.data = (uint64_t *)((char *)f.page + 4096);
	slot->tid = 1;
	slot->tp = 1;
	f.block->slots_claimed = 1;
	for (uint64_t i = 0; i < live; i++)
		born(&f, i, 0);
	do {
		usleep(10000);
		p = recorder_progress(r);
	} while (p.live_blocks + 1024 < live);
	cpu_of_others(&most[0], &all[0]);
	for (uint64_t n = 0; !live && n < events; n += 2)
		pair(&f, n / 2);
	for (uint64_t n = 0; live && n < events; n += 2) {
		uint64_t i = rnd(&f) % live;

		gone(&f, i, turn[i]);
		turn[i] = (turn[i] + 1) % 15;
		born(&f, i, turn[i]);
	}
	__atomic_store_n(&f.page->data_head, f.head, __ATOMIC_RELEASE);
	do {
		usleep(10000);
		p = recorder_progress(r);
	} while (p.events < live + events);
	cpu_of_others(&most[1], &all[1]);
	recorder_stop(r, &finish, &losses, &ending);
	printf("{\"live\": %lu, \"events\": %lu, \"events_per_cpu_s\": %.0f, "
	       "\"events_per_aggregator_s\": %.0f, \"bytes_per_live_block\": %.1f, "
	       "\"file_bytes_per_event\": %.2f}\n",
	       live, events, (double)events * 1e9 / (double)(all[1] - all[0]),
	       (double)events * 1e9 / (double)(most[1] - most[0]),
	       live ? (double)p.live_table_bytes / (double)live : 0,
	       (double)p.file_bytes / (double)(live + events));
	recorder_free(r);
	free(turn);
	return 0;
}
