/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A model made by hand.  Its stacks, all called by main:
 *
 *	1  parse	/src/parse.c:10	libparse.so
 *	2  parse	/src/parse.c:10	libparse.so, inside of run
 *	3  parse	/src/parse.c:20	libparse.so
 *	4  load(int)	/src/load.c:5	app
 *	5  parse	no source	app
 *	6  parse	no source	app, at another address
 */
#ifndef TESTS_HAND_H
#define TESTS_HAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "formats/session.h"
#include "model/model.h"
#include "top/past.h"

#define SECOND 1000000000ull

static void item(struct model *m, const struct mpf_item *it)
{
	assert_int_equal(facts_item(m, it), 0);
}

static void module(struct model *m, const char *path, uint64_t start)
{
	item(m,
	     &(struct mpf_item){.kind = MPF_MODULE,
				.module = {.start = start, .end = start + 0x1000, .path = path}});
}

static void symbol(struct model *m, uint64_t pc, struct mp_symbol s)
{
	item(m, &(struct mpf_item){.kind = MPF_SYMBOLS,
				   .symbols = {.pc = pc | SS_PC_EXACT, .n = 1, .at = &s}});
}

/* @caller: between @pc and main; 0: none */
static void stack(struct model *m, uint32_t id, uint64_t pc, uint64_t caller)
{
	uint64_t at[3] = {pc | SS_PC_EXACT};
	uint32_t n = 1;

	if (caller)
		at[n++] = caller | SS_PC_EXACT;
	at[n++] = 0x1000 | SS_PC_EXACT;
	item(m, &(struct mpf_item){.kind = MPF_STACK, .stack = {.id = id, .n = n, .pc = at}});
}

static void thread(struct model *m, uint32_t tid, const char *name)
{
	item(m, &(struct mpf_item){.kind = MPF_THREAD, .thread = {.tid = tid, .name = name}});
}

static void begin(struct model *m)
{
	static const struct history_progress none;

	assert_int_equal(model_begin(m, "x", &none, NULL), 0);
	m->facts.has_finish = true;
	module(m, "/bin/app", 0x1000);
	module(m, "/lib/libparse.so", 0x2000);
	symbol(m, 0x1000, (struct mp_symbol){.function = "main"});
	symbol(m, 0x1010, (struct mp_symbol){.function = "run"});
	symbol(m, 0x1020,
	       (struct mp_symbol){.function = "load(int)",
				  .raw_function = "_Z4loadi",
				  .source = "/src/load.c",
				  .line = 5});
	symbol(m, 0x1030, (struct mp_symbol){.function = "parse"});
	symbol(m, 0x1040, (struct mp_symbol){.function = "parse"});
	symbol(m, 0x2000,
	       (struct mp_symbol){.function = "parse", .source = "/src/parse.c", .line = 10});
	symbol(m, 0x2010,
	       (struct mp_symbol){.function = "parse", .source = "/src/parse.c", .line = 20});
	stack(m, 1, 0x2000, 0);
	stack(m, 2, 0x2000, 0x1010);
	stack(m, 3, 0x2010, 0);
	stack(m, 4, 0x1020, 0);
	stack(m, 5, 0x1030, 0);
	stack(m, 6, 0x1040, 0);
}

/* The state of a stack. */
static void set(struct model *m, uint32_t id, uint64_t live_bytes, uint64_t live_blocks,
		uint64_t allocations, uint64_t allocated_bytes, uint64_t temporary)
{
	struct group *g = &m->sums.group[id];

	g->live_bytes = live_bytes;
	g->live_blocks = live_blocks;
	g->allocations = allocations;
	g->allocated_bytes = allocated_bytes;
	g->temporary = temporary;
}

static void look(struct past *p, struct model *m, uint64_t time_ns)
{
	m->facts.end_ns = time_ns;
	assert_int_equal(past_add(p, m), 0);
}

#endif
