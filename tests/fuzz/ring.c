/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rings of an untrusted target: passes batches, as the reader makes them of the rings, to the
 * aggregator, with a session block whose contents are taken from the input.
 */
#include "fuzz.h"
#include <pthread.h>
#include "record/aggregator.h"

#define SLOTS	    4u
#define BLOCK_BYTES (64u << 10)
#define ARENA	    (16u << 10)
#define ARENA_WORDS ((BLOCK_BYTES - ARENA) / 8)

static bool code_changed(void *ctx)
{
	return *(uint64_t *)ctx & 1;
}

static bool next_module(void *ctx, struct mp_module *m)
{
	(void)ctx;
	(void)m;
	return false;
}

/* Takes a batch from the input: number of segments, then for each slot, tid, length, records. */
static struct batch *take_batch(struct input *in, uint64_t now)
{
	struct batch *b = calloc(1, sizeof(*b));
	uint32_t n = (uint32_t)input_number(in, 1) % (SLOTS + 1);
	size_t used = 0;

	if (!b)
		abort();
	b->segment = calloc(n + 1, sizeof(*b->segment));
	b->data = malloc(in->left + 8);
	b->until = now - input_number(in, 2);
	b->read_at = b->until + input_number(in, 1);
	for (uint32_t i = 0; i < n; i++) {
		struct segment *s = &b->segment[b->nsegments++];
		size_t bytes;

		s->slot = (uint32_t)input_number(in, 1) % SLOTS;
		s->tid = (uint32_t)input_number(in, 1);
		bytes = input_number(in, 2) & ~7ull;
		s->bytes = bytes < in->left ? bytes : in->left & ~7ull;
		s->position = input_number(in, 2) & ~7ull;
		s->bytes = s->bytes < in->left ? s->bytes : in->left & ~7ull;
		input_take(in, b->data + used, s->bytes);
		used += s->bytes;
		s->nends = (uint32_t)input_number(in, 1) % 4;
		for (uint32_t k = 0; k < s->nends; k++) {
			struct end e = {.free.h = {MPR_FREE, 0, sizeof(e.free)},
					.free.addr_hook = input_number(in, 3),
					.position = s->position + input_number(in, 2)};

			if (vec_push(&b->ends, e))
				abort();
		}
	}
	b->bytes = used;
	b->size = used + sizeof(*b);
	return b;
}

static void records_in_time(struct batch *b, uint64_t now)
{
	/* Small times are relative to now: an input with absolute times would be out of date. */
	for (size_t at = 0; at + 16 <= b->bytes; at += 8) {
		struct mpr_free *f = (void *)(b->data + at);

		if (mpr_type(&f->h) >= MPR_ALLOC && mpr_type(&f->h) <= MPR_FAULT &&
		    f->time < 1u << 20)
			f->time = now - f->time;
	}
}

static void release(struct aggregator *a, struct recorder_shared *shared)
{
	mpf_close(a->file);
	aggregator_free(a);
	queue_free(shared->queue);
	pthread_mutex_destroy(&shared->lock);
	pthread_mutex_destroy(&shared->clock_lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct ss_journal *journal = calloc(1, sizeof(*journal));
	struct ss_control *block = calloc(1, BLOCK_BYTES);
	uint64_t now = clock_ticks(), answer = input_number(&in, 1);
	struct recorder_config config = {.block = block,
					 .block_length = BLOCK_BYTES,
					 .journal = journal,
					 .pid = getpid(),
					 .code_changed = code_changed,
					 .next_module = next_module,
					 .ctx = &answer};
	struct block_layout layout = {.slots = (char *)block + 4096,
				      .nslots = SLOTS,
				      .slot_stride = 1024,
				      .slot_ring = 512,
				      .ring_size = 512,
				      .arena = (uint64_t *)((char *)block + ARENA),
				      .arena_words = ARENA_WORDS};
	struct recorder_shared shared = {.queue = queue_new(1u << 30),
					 .clock = {.ticks0 = now - (1u << 24),
						   .from_ticks = now - (1u << 24),
						   .ns_per_tick = 0.5,
						   .slope = 0.5,
						   .rate_guess = 2e9}};
	struct aggregator a = {0};
	struct mp_info info = {.pid = 1, .machine = 62};
	struct mp_err err;
	char path[64];

	input_take(&in, block, input_number(&in, 2) % BLOCK_BYTES);
	journal->nhooks = journal->nnames = 2;
	journal->hook[0].kind = journal->name[0].kind = SS_HOOK_ALLOC;
	journal->hook[1].kind = journal->name[1].kind = SS_HOOK_FREE;
	snprintf(path, sizeof(path), "/dev/shm/memprof-fuzz-%d", getpid());
	pthread_mutex_init(&shared.lock, NULL);
	pthread_mutex_init(&shared.clock_lock, NULL);
	if (aggregator_init(&a, &config, &layout, &shared) ||
	    mpf_create(path, &info, &a.file, &err))
		abort();
	unlink(path);
	while (in.left) {
		struct batch *b = take_batch(&in, now);

		records_in_time(b, now);
		queue_put(shared.queue, b, 0);
	}
	queue_end(shared.queue);
	aggregator_run(&a);
	if (shared.shown.live_blocks != live_count(a.live) + 0 &&
	    shared.shown.live_blocks > (1ull << 60))
		abort();
	release(&a, &shared);
	free(journal);
	free(block);
	return 0;
}
