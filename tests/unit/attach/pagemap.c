/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach/proc/pagemap.h"

#define SIZE (1ul << 30)

/* Every second one of this many pages is touched, so that one query cannot return all runs. */
#define MANY (4ul * PAGEMAP_RUNS)

struct world {
	struct pagemap p;
	uint64_t page, start, end;
};

static void make(struct world *w, bool scans)
{
	char *m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	assert_int_equal(madvise(m, SIZE, MADV_NOHUGEPAGE), 0);
	w->page = (uint64_t)sysconf(_SC_PAGESIZE);
	w->start = (uint64_t)(uintptr_t)m;
	w->end = w->start + SIZE;
	for (size_t i = 0; i < MANY; i += 2)
		m[i * w->page] = 1;
	m[SIZE / 2] = m[SIZE / 2 + w->page] = 1;
	m[SIZE - 1] = 1;
	assert_int_equal(pagemap_open(&w->p, getpid()), 0);
	if (scans && !w->p.scans) {
		pagemap_close(&w->p);
		munmap(m, SIZE);
		skip(); /* the kernel is older than Linux 6.7 */
	}
	if (!scans && w->p.scans) {
		w->p.scans = false;
		assert_int_equal(map_usages_read(getpid(), &w->p.held), 0);
	}
}

static void finish(struct world *w)
{
	pagemap_close(&w->p);
	munmap((void *)(uintptr_t)w->start, SIZE);
}

static void expect(struct world *w, uint64_t *at, uint64_t start, uint64_t end)
{
	struct page_run run;

	assert_true(pagemap_next(&w->p, *at, w->end, &run));
	assert_int_equal(run.start, start);
	assert_int_equal(run.end, end);
	assert_false(run.swapped);
	*at = run.end;
}

static void all_runs(struct world *w)
{
	uint64_t at = w->start, middle = w->start + SIZE / 2;
	struct page_run run;

	for (uint64_t i = 0; i < MANY; i += 2)
		expect(w, &at, w->start + i * w->page, w->start + (i + 1) * w->page);
	expect(w, &at, middle, middle + 2 * w->page);
	expect(w, &at, w->end - w->page, w->end);
	assert_false(pagemap_next(&w->p, at, w->end, &run));
	/* Again from the middle of a run, and not beyond the end of the query. */
	at = middle + w->page + 7;
	expect(w, &at, middle + w->page, middle + 2 * w->page);
	assert_false(pagemap_next(&w->p, middle + 2 * w->page, w->end - w->page, &run));
	assert_true(pagemap_next(&w->p, middle, middle + w->page, &run));
	assert_int_equal(run.end, middle + w->page);
}

static void by_scan(void **state)
{
	struct world w;

	(void)state;
	make(&w, true);
	all_runs(&w);
	finish(&w);
}

static void by_entries(void **state)
{
	struct world w;

	(void)state;
	make(&w, false);
	all_runs(&w);
	finish(&w);
}

/* Without access to the pagemap, the whole range must be reported as present. */
static void not_to_be_had(void **state)
{
	struct pagemap p = {.fd = -1, .page_size = 4096};
	struct page_run run;

	(void)state;
	assert_true(pagemap_next(&p, 0x1234, 0x9000, &run));
	assert_true(run.start == 0x1000 && run.end == 0x9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_scan),
	    cmocka_unit_test(by_entries),
	    cmocka_unit_test(not_to_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
