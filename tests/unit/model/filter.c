/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the sums of filtered models of random recordings with those of a simple filter. */
#include "model/filter/filter.h"
#include "model/history/history.h"
#include "obvious.h"

#define ROUNDS	25
#define FILTERS 40

/* ------------------------------------------------------------ random filters -- */

static void set_digits(struct condition *c, const char *format)
{
	char digits[11];
	int n = 0;

	c->v = 0;
	for (uint32_t d = 0; d < 10; d++) {
		if (rnd(3) == 0 || (d == 9 && !n)) {
			digits[n++] = (char)('0' + d);
			c->v |= 1u << d;
		}
	}
	digits[n] = 0;
	snprintf(c->text, sizeof(c->text), format, digits);
}

/* Sets a random time, written in one of the possible ways. */
static void set_time(struct condition *c, uint64_t end, bool upper)
{
	uint64_t way = rnd(4), ns = rnd(end + end / 10);

	if (way == 0) {
		c->v = rnd(120);
		snprintf(c->text, sizeof(c->text), "%u%%", (unsigned int)c->v);
		c->v = (uint64_t)((double)end * (double)c->v / 100);
	} else if (way == 1) {
		uint64_t ms = (START + ns) / MS;

		snprintf(c->text, sizeof(c->text), "%llu", (unsigned long long)ms);
		c->v = ms * MS < START ? 0 : ms * MS - START;
		if (upper)
			c->v = ms * MS + 999999 - START;
	} else {
		c->v = ns;
		snprintf(c->text, sizeof(c->text), "%llums%lluns", (unsigned long long)(ns / MS),
			 (unsigned long long)(ns % MS));
	}
}

static void set_duration(struct condition *c, uint64_t most)
{
	c->v = rnd(most);
	snprintf(c->text, sizeof(c->text), "%llu.%03llus%lluus%lluns",
		 (unsigned long long)(c->v / 1000000000), (unsigned long long)(c->v / MS % 1000),
		 (unsigned long long)(c->v / 1000 % 1000), (unsigned long long)(c->v % 1000));
}

static void set_number(struct condition *c, uint64_t end)
{
	const struct number *n = c->number = &numbers[rnd(sizeof(numbers) / sizeof(numbers[0]))];

	c->upper = rnd(2);
	snprintf(c->name, sizeof(c->name), "%s_%s", n->name, c->upper ? "max" : "min");
	if (n->written == TIME) {
		set_time(c, end, c->upper);
	} else if (n->written == DURATION) {
		set_duration(c, end / n->most);
	} else {
		c->percent = n->written == SHARE && rnd(2);
		c->v = n->least + rnd(n->most - n->least + 1);
		snprintf(c->text, sizeof(c->text), n->written == HEX ? "0x%llx" : "%llu%s",
			 (unsigned long long)c->v, c->percent ? "%" : "");
	}
}

static void set_word(struct condition *c, const char *const *words, uint64_t n)
{
	c->v = rnd(n);
	snprintf(c->text, sizeof(c->text), "%s", words[c->v]);
}

static void set_name(struct condition *c)
{
	static const char *const format[] = {"^f[%s]$", "/[%s]\\.c", "l[%s]"}, *const name[] = {
										   "function",
										   "source",
										   "library"};

	c->text_of = (enum text_of)rnd(3);
	set_digits(c, format[c->text_of]);
	snprintf(c->name, sizeof(c->name), "%s%s_regex", c->what == NAME ? "" : "negative_",
		 name[c->text_of]);
}

static void set_thread(struct condition *c)
{
	static const char *const worker[] = {"w0", "w1"};

	c->by_name = rnd(2);
	if (c->by_name) {
		set_word(c, worker, 2);
		return;
	}
	c->v = 100 + rnd(THREADS + 1);
	snprintf(c->text, sizeof(c->text), "%u", (unsigned int)c->v);
}

static void set_map(struct condition *c)
{
	static const char *const name[] = {"[anonymous]", "[heap]"};

	c->by_name = rnd(2);
	if (c->by_name) {
		set_word(c, name, 2);
		return;
	}
	c->v = 0x10000 + rnd(ADDRS * 64);
	snprintf(c->text, sizeof(c->text), "0x%llx", (unsigned long long)c->v);
}

static void random_condition(const struct fake *f, struct condition *c)
{
	static const char *const no_yes[] = {"no", "yes"}, *const arena[] = {"main", "non-main"},
				 *const mark[] = {"m0", "m1"};
	static const char *const lifetimes[] = {"all",
						"only_leaked",
						"only_chain_leaked",
						"only_temporary",
						"only_whole_group_leaked",
						"only_not_deallocated_in_current_range",
						"only_deallocated_in_current_range",
						"bytehound_only_temporary",
						"bytehound_only_whole_group_leaked"};
	static const char *const allocators[] = {"main_arena", "other_arena", "mmapped", "jemalloc",
						 "tcmalloc",   "mimalloc",    "other"};
	static const char *const name[] = {"",	       "from",	 "to",	     "alive_at",
					   "lifetime", "",	 "",	     "backtraces",
					   "thread",   "marker", "from_map", "allocator",
					   "mmaped",   "arena",	 "jemalloc"};

	memset(c, 0, sizeof(*c));
	c->what = rnd(2) ? NUMBER : (enum what)rnd(JEMALLOC + 1);
	snprintf(c->name, sizeof(c->name), "%s", name[c->what]);
	switch (c->what) {
	case NUMBER:
		set_number(c, f->end);
		break;
	case FROM:
	case TO:
	case ALIVE_AT:
		set_time(c, f->end, c->what == TO);
		break;
	case LIFETIME:
		set_word(c, lifetimes, 9);
		break;
	case NAME:
	case NOT_NAME:
		set_name(c);
		break;
	case BACKTRACE:
		c->v = 1 + rnd(STACKS);
		snprintf(c->text, sizeof(c->text), "%u", (unsigned int)c->v);
		break;
	case THREAD:
		set_thread(c);
		break;
	case MARKER:
		set_word(c, mark, 2);
		break;
	case MAP:
		set_map(c);
		break;
	case ALLOCATOR:
		set_word(c, allocators, 7);
		break;
	default:
		set_word(c, c->what == ARENA ? arena : no_yes, 2);
	}
}

/* Makes random conditions and sets them in @filter.  Return: their number. */
static int random_filter(const struct fake *f, struct condition *c, struct filter *filter)
{
	int n = 0, wanted = 1 + (int)rnd(3);
	struct mp_err err;

	filter_init(filter);
	while (n < wanted) {
		bool twice = false;

		random_condition(f, &c[n]);
		for (int k = 0; k < n; k++)
			twice = twice || (!strcmp(c[k].name, c[n].name) && !is_any(&c[n]) &&
					  c[n].what != ALIVE_AT);
		if (twice)
			continue;
		if (filter_set(filter, c[n].name, c[n].text, &err))
			fail_msg("%s", err.what);
		n++;
	}
	return n;
}

/* ------------------------------------------------------------ comparing -- */

static void expect_group(const struct fake *f, const bool *through, uint32_t stack,
			 const struct group *g)
{
	struct group want = {0};

	for (int i = 0; i < f->n; i++) {
		const struct alloc *a = &f->a[i];

		if (!through[i] || a->stack != stack)
			continue;
		if (!want.allocations++)
			want.first_ns = a->t;
		want.last_ns = a->t;
		want.allocated_bytes += a->size;
		want.usable_bytes += a->usable;
		want.frees += a->end != NEVER;
		want.temporary += a->temporary;
		want.temporary_bytes += a->temporary ? a->size : 0;
		want.live_blocks += a->end == NEVER;
		want.live_bytes += a->end == NEVER ? a->size : 0;
		want.live_usable += a->end == NEVER ? a->usable : 0;
	}
	assert_int_equal(g->allocations, want.allocations);
	assert_int_equal(g->allocated_bytes, want.allocated_bytes);
	assert_int_equal(g->usable_bytes, want.usable_bytes);
	assert_int_equal(g->frees, want.frees);
	assert_int_equal(g->temporary, want.temporary);
	assert_int_equal(g->temporary_bytes, want.temporary_bytes);
	assert_int_equal(g->live_blocks, want.live_blocks);
	assert_int_equal(g->live_bytes, want.live_bytes);
	assert_int_equal(g->live_usable, want.live_usable);
	assert_int_equal(g->first_ns, want.first_ns);
	assert_int_equal(g->last_ns, want.last_ns);
}

static uint64_t live_at(const struct fake *f, const bool *through, uint64_t step, uint32_t stack)
{
	uint64_t bytes = 0;

	for (int i = 0; i < f->n; i++) {
		if (through[i] && f->a[i].born <= step && f->a[i].died > step &&
		    (!stack || f->a[i].stack == stack))
			bytes += f->a[i].size;
	}
	return bytes;
}

static void expect_peak(const struct fake *f, const bool *through, const struct model *m)
{
	uint64_t peak = 0, at = 0;

	for (uint64_t step = 0; step <= f->step; step++) {
		if (live_at(f, through, step, 0) > peak) {
			peak = live_at(f, through, step, 0);
			at = step;
		}
	}
	assert_int_equal(m->sums.peak_bytes, peak);
	assert_int_equal(m->sums.total.peak_bytes, peak);
	assert_int_equal(m->sums.total.peak_blocks, m->sums.peak_blocks);
	for (uint32_t s = 1; s <= STACKS; s++)
		assert_int_equal(m->sums.group[s].peak_bytes, live_at(f, through, at, s));
}

/* Checks that the sums by size, thread and time agree with the total. */
static void expect_agreement(const struct model *m, uint64_t lost)
{
	struct size_class c = {0};
	struct model_thread t = {0};
	struct timeline_point p = {0};
	uint64_t highest = 0, before = 0;

	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		c.allocations += m->sums.size_class[i].allocations;
		c.allocated_bytes += m->sums.size_class[i].allocated_bytes;
		c.usable_bytes += m->sums.size_class[i].usable_bytes;
		c.temporary += m->sums.size_class[i].temporary;
		c.live_blocks += m->sums.size_class[i].live_blocks;
		c.live_bytes += m->sums.size_class[i].live_bytes;
		c.live_usable += m->sums.size_class[i].live_usable;
	}
	vec_for_each (&m->tasks.threads, i) {
		t.allocations += i->allocations;
		t.allocated_bytes += i->allocated_bytes;
		t.frees += i->frees;
		t.temporary += i->temporary;
		t.live_blocks += i->live_blocks;
		t.live_bytes += i->live_bytes;
	}
	vec_for_each (&m->sums.timeline, i) {
		assert_true(i->time_ns > before || (!before && i->time_ns == before));
		before = i->time_ns;
		p.allocations += i->allocations;
		p.allocated_bytes += i->allocated_bytes;
		p.frees += i->frees;
		p.freed_bytes += i->freed_bytes;
		assert_int_equal(i->live_bytes, p.allocated_bytes - p.freed_bytes);
		assert_int_equal(i->live_blocks, p.allocations - p.frees);
		highest = i->peak_bytes > highest ? i->peak_bytes : highest;
	}
	assert_int_equal(before, m->facts.end_ns);
	assert_int_equal(highest, m->sums.peak_bytes);
	assert_int_equal(c.allocations, m->sums.total.allocations);
	assert_int_equal(c.allocated_bytes, m->sums.total.allocated_bytes);
	assert_int_equal(c.usable_bytes, m->sums.total.usable_bytes);
	assert_int_equal(c.temporary, m->sums.total.temporary);
	assert_int_equal(c.live_blocks, m->sums.total.live_blocks);
	assert_int_equal(c.live_bytes, m->sums.total.live_bytes);
	assert_int_equal(c.live_usable, m->sums.total.live_usable);
	assert_int_equal(t.allocations, m->sums.total.allocations);
	assert_int_equal(t.allocated_bytes, m->sums.total.allocated_bytes);
	assert_int_equal(t.frees + lost, m->sums.total.frees); /* lost frees have no thread */
	assert_int_equal(t.temporary, m->sums.total.temporary);
	assert_int_equal(t.live_blocks, m->sums.total.live_blocks);
	assert_int_equal(t.live_bytes, m->sums.total.live_bytes);
	assert_int_equal(p.allocations, m->sums.total.allocations);
	assert_int_equal(p.frees, m->sums.total.frees);
}

static void expect_blocks(const struct fake *f, const bool *through, const struct model *m)
{
	uint64_t bytes = 0;

	for (int i = 0; i < f->n; i++)
		bytes += through[i] && f->a[i].end == NEVER ? f->a[i].size : 0;
	vec_for_each (&m->blocks, b)
		bytes -= b->size;
	assert_int_equal(bytes, 0);
	assert_int_equal(m->blocks.n, m->sums.total.live_blocks);
}

/* Return: the number of allocations that passed the filter. */
static int compare(const struct fake *f, const struct condition *c, int n,
		   const struct filter *filter)
{
	struct model_options o = {.filter = filter, .blocks = true};
	struct mp_err err = {0};
	bool through[EVENTS];
	struct model m;
	uint64_t lost = 0;
	int count = 0;

	for (int i = 0; i < f->n; i++) {
		through[i] = lets_through(f, i, c, n);
		count += through[i];
		lost += through[i] && f->a[i].lost;
	}
	if (model_load(path, &o, &m, &err))
		fail_msg("%s", err.what);
	if (m.sums.total.allocations != (uint64_t)count) {
		for (int k = 0; k < n; k++)
			print_message("%s=%s\n", c[k].name, c[k].text);
	}
	assert_int_equal(m.facts.end_ns, f->end);
	assert_int_equal(m.sums.total.allocations, count);
	assert_int_equal((m.unfiltered.group ? &m.unfiltered.total : &m.sums.total)->allocations,
			 f->n);
	for (uint32_t s = 1; s <= STACKS; s++)
		expect_group(f, through, s, &m.sums.group[s]);
	expect_peak(f, through, &m);
	expect_agreement(&m, lost);
	expect_blocks(f, through, &m);
	model_free(&m);
	return count;
}

static void test_same_as_obvious(void **state)
{
	int some = 0, filters = 0;
	struct fake *f = malloc(sizeof(*f));

	(void)state;
	assert_non_null(f);
	for (int round = 0; round < (getenv("MEMPROF_FULL") ? 20 * ROUNDS : ROUNDS); round++) {
		struct condition c[4];
		struct filter filter;

		random_recording(f);
		compare(f, NULL, 0, NULL);
		for (int i = 0; i < FILTERS; i++) {
			int n = random_filter(f, c, &filter), count;

			count = compare(f, c, n, &filter);
			some += count && count < f->n;
			filters++;
			filter_free(&filter);
		}
	}
	free(f);
	/* Filters that pass nothing or everything test little. */
	assert_true(some > filters / 2);
}

static int setup(void **state)
{
	(void)state;
	return close(mkstemp(path));
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_obvious)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
