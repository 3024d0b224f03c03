/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes a recording of synthetic events like those of a server: events FILE MILLIONS LIVE.  Stacks
 * of 8 to 30 frames share their outer parts.  Most blocks are small.  There are 8 threads.  One of
 * 20 operations on a live block is a realloc, the others free it.  About LIVE blocks are live at
 * any time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formats/file.h"
#include "formats/session.h"

#define STACKS	4000u
#define THREADS 8u

static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint64_t)((unsigned __int128)(seed >> 1 << 1) * n >> 64);
}

static void put_stacks(struct mpf_writer *w)
{
	for (uint32_t id = 1; id <= STACKS; id++) {
		uint64_t pc[32];
		uint32_t n = 8 + (uint32_t)rnd(23);

		/* The further out a frame is, the fewer different addresses it has. */
		for (uint32_t i = 0; i < n; i++)
			pc[n - 1 - i] = 0x401000 + 0x1000 * i + 16 * (id % (1 + i * i * 4));
		pc[0] = 0x7f0000001000 | SS_PC_EXACT;
		mpf_put_stack(w, id, SS_STACK_COMPLETE, pc, n);
	}
}

static void put_symbols(struct mpf_writer *w)
{
	for (uint32_t i = 0; i < 32; i++) {
		for (uint32_t k = 0; k < 1 + i * i * 4; k++) {
			char name[32];
			struct mp_symbol s = {.function = name, .source = "/src/server.cc"};

			snprintf(name, sizeof(name), "layer%u::call%u", i, k);
			s.line = k;
			mpf_put_symbols(w, 0x401000 + 0x1000 * i + 16 * k, &s, 1);
		}
	}
}

static uint64_t some_size(void)
{
	uint64_t r = rnd(100);

	return r < 70 ? 8 + rnd(120) : r < 95 ? 128 + rnd(4000) : 4096 + rnd(200000);
}

static struct mp_event event(uint8_t kind, uint16_t hook, uint64_t block, uint64_t now)
{
	return (struct mp_event){.kind = kind,
				 .hook = hook,
				 .time_ns = now,
				 .tid = 1000 + (uint32_t)rnd(THREADS),
				 .addr = 0x7f1000000000 + block * 48,
				 .fd = -1};
}

static void fill(struct mp_event *ev)
{
	ev->size = some_size();
	ev->usable = (ev->size + 23) / 16 * 16 - 8;
	/* Few stacks make most of the allocations. */
	ev->stack = 1 + (uint32_t)(rnd(STACKS) * rnd(STACKS) / STACKS);
}

/* Return: the maximum number of live blocks. */
static uint64_t put_events(struct mpf_writer *w, uint64_t events, uint64_t blocks)
{
	uint8_t *live = calloc(blocks, 1);
	uint64_t now = 0, alive = 0, most = 0;

	for (uint64_t n = 0; live && n < events; n++) {
		uint64_t b = rnd(blocks);
		struct mp_event ev;

		now += rnd(400);
		if (!live[b]) {
			ev = event(EV_ALLOC, 0, b, now);
			fill(&ev);
		} else if (rnd(20) == 0) {
			ev = event(EV_REALLOC_BEGIN, 2, b, now);
			mpf_put_event(w, &ev);
			ev.kind = EV_REALLOC_END;
			ev.old_addr = ev.addr;
			fill(&ev);
			n++;
		} else {
			ev = event(EV_FREE, 1, b, now);
		}
		alive += ev.kind == EV_ALLOC;
		alive -= ev.kind == EV_FREE;
		most = alive > most ? alive : most;
		live[b] = ev.kind != EV_FREE;
		mpf_put_event(w, &ev);
	}
	free(live);
	return most;
}

int main(int argc, char **argv)
{
	static const struct mp_hook_info hook[] = {
	    {"malloc", "libc.so.6", 1}, {"free", "libc.so.6", 2}, {"realloc", "libc.so.6", 3}};
	struct mp_module m = {.start = 0x400000, .end = 0x440000, .path = "/usr/bin/server"};
	struct mp_module libc = {
	    .start = 0x7f0000000000, .end = 0x7f0000200000, .path = "/lib/libc.so.6"};
	struct mp_info info = {
	    .pid = 1, .machine = 62, .cmdline = "server", .executable = "server"};
	struct mp_finish finish = {.reason = MP_END_EXITED};
	struct mpf_writer *w;
	struct mp_err err;

	if (argc != 4 || mpf_create(argv[1], &info, &w, &err))
		return 1;
	for (int i = 0; i < 3; i++)
		mpf_put_hook(w, &hook[i]);
	mpf_put_module(w, &m);
	mpf_put_module(w, &libc);
	put_stacks(w);
	/* About half of the addresses have a live block at any time. */
	finish.peak_live_blocks =
	    put_events(w, strtoull(argv[2], NULL, 10) * 1000000, strtoull(argv[3], NULL, 10) * 2);
	put_symbols(w);
	mpf_put_finish(w, &finish);
	return mpf_close(w) != 0;
}
