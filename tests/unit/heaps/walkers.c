/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compares heap walkers with programs that keep a list of their blocks (tests/victims/truth.c), one
 * row per allocator.  A walker must list exactly these blocks and those of the C library.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "heaps/walker.h"
#include "../../victims/truth.h"
#include "../damaged.h"
#include "../stopped.h"

enum { THREADS = 8, LOOKS = 3, DAMAGES = 6 };
#define MOST_LOOKS                                                                                 \
	5 /* for one without a thread in the middle of a change, as in heaps/consistent.c */

struct row {
	const char *name, *program;
	const char
	    *preload; /* one that the Makefile builds, else of the system or the release; with a
			      * slash: in the folder of releases */
	const char *walker;
	const char *release; /* Debian release whose dynamic linker and libraries are used */
	unsigned batch;	     /* maximum of freed blocks that a thread moves between lists */
	bool no_break;	     /* the program's break cannot grow */
	bool plain;	     /* the allocator crashes or fails at aligned allocations */
	bool touch;	     /* a thread that allocates has blocks of the allocator's own */
	bool slow;	     /* takes long to build: only with MEMPROF_FULL=1 (make check-all) */
};

static const struct row rows[] = {
    {"glibc", "truth", .walker = "glibc malloc"},
    {"glibc static", "truth-static", .walker = "glibc malloc"},
    {"glibc 2.31", "truth-2.31", .walker = "glibc malloc", .release = "bullseye"},
    {"glibc 2.41", "truth-2.31", .walker = "glibc malloc", .release = "trixie"},
    {"musl dynamic", "truth-musl", .walker = "musl mallocng"},
    {"musl static", "truth-musl-static", .walker = "musl mallocng"},
    {"musl 1.2.2", "truth-musl", .walker = "musl mallocng", .release = "bullseye"},
    {"musl 1.2.5", "truth-musl", .walker = "musl mallocng", .release = "trixie"},
    /* free() removes both neighbours from their lists to join them. */
    {"musl old", "truth-musl", .walker = "musl oldmalloc", .release = "musl-old", .batch = 2,
     .slow = true},
    {"musl old static", "truth-musl-old-static", .walker = "musl oldmalloc", .release = "musl-old",
     .batch = 2},
    {"musl old, no break", "truth-musl-old-static", .walker = "musl oldmalloc",
     .release = "musl-old", .batch = 2, .no_break = true},
    {"jemalloc", "truth", "libjemalloc.so.2", "jemalloc", .batch = 100},
    {"jemalloc static", "truth-jemalloc-static", .walker = "jemalloc", .batch = 100},
    {"jemalloc of trixie", "truth-2.31", "libjemalloc.so.2", "jemalloc", .release = "trixie",
     .batch = 100},
    {"jemalloc of bullseye", "truth-2.31", "libjemalloc.so.2", "jemalloc", .release = "bullseye",
     .batch = 100},
    {"jemalloc 5.2 static", "truth-jemalloc-5.2-static", .walker = "jemalloc",
     .release = "bullseye", .batch = 100},
    {"tcmalloc", "truth", "libtcmalloc_minimal.so.4", "tcmalloc", .batch = 32},
    {"tcmalloc static", "truth-tcmalloc-static", .walker = "tcmalloc", .batch = 32},
    {"tcmalloc of bullseye", "truth-2.31", "libtcmalloc_minimal.so.4", "tcmalloc",
     .release = "bullseye", .batch = 32},
    {"tcmalloc of trixie", "truth-2.31", "libtcmalloc_minimal.so.4", "tcmalloc",
     .release = "trixie", .batch = 32},
    {"mimalloc", "truth", "libmimalloc.so.2.0", "mimalloc", .batch = 512},
    {"mimalloc of trixie", "truth-2.31", "libmimalloc.so.3", "mimalloc", .release = "trixie",
     .batch = 512, .plain = true},
    {"mimalloc 2.1", "truth", "built/libmimalloc-2.1.so", "mimalloc", .batch = 512},
    {"mimalloc 3.4", "truth", "built/libmimalloc-3.4.so", "mimalloc", .batch = 512, .slow = true},
    {"mimalloc of trixie-backports", "truth",
     "trixie-backports/usr/lib/x86_64-linux-gnu/libmimalloc.so.3", "mimalloc", .batch = 512,
     .touch = true, .slow = true},
    {"mimalloc of forky", "truth-2.31", "libmimalloc.so.3", "mimalloc", .release = "forky",
     .batch = 512, .touch = true, .slow = true},
    {"jemalloc 5.1", "truth", "built/libjemalloc-5.1.so", "jemalloc", .batch = 100, .slow = true},
    {"jemalloc, pages of 64 KiB", "truth", "built/libjemalloc-64k.so", "jemalloc", .batch = 100,
     .slow = true},
    {"jemalloc of forky", "truth-2.31", "libjemalloc.so.2", "jemalloc", .release = "forky",
     .batch = 100, .slow = true},
    {"tcmalloc of forky", "truth-2.31", "libtcmalloc_minimal.so.4", "tcmalloc", .release = "forky",
     .batch = 32, .slow = true},
    {"musl of forky", "truth-musl", .walker = "musl mallocng", .release = "forky", .slow = true},
};

/* Libraries with these names but an unknown layout: the walker must name and refuse them. */
static const struct row refused_rows[] = {
    {"jemalloc, refused", "truth", "libjemalloc-unknown.so", .walker = "jemalloc"},
    {"tcmalloc, refused", "truth", "libtcmalloc-unknown.so", .walker = "tcmalloc"},
    {"mimalloc, refused", "truth", "libmimalloc-unknown.so", .walker = "mimalloc"},
};

struct victim {
	pid_t pid;
	struct truth *truth;
	size_t size;
	char file[64];
	const char *mode;
};

/* Result of comparing a walk with the program's list. */
struct outcome {
	int ret; /* of the walk */
	size_t truth, missing, extra, other_size, resizing;
	struct heap heap;
};

static void releases_path(const char *name, char path[512])
{
	const char *dir = getenv("RELEASES");

	snprintf(path, 512, "%s/%s", dir ? dir : "build/releases", name);
}

static const char *release_dir(const struct row *row)
{
	static char path[256];
	const char *dir = getenv("RELEASES");

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "build/releases", row->release);
	return path;
}

static bool is_static(const struct row *row)
{
	return strstr(row->program, "static");
}

static const char *libc_of(const struct row *row)
{
	return strstr(row->program, "musl") ? "musl" : "gnu";
}

/* Return: the release's dynamic linker for the row's program, or NULL. */
static const char *linker(const struct row *row)
{
	const char *name = strcmp(libc_of(row), "gnu") ? "libc.so" : "ld-linux-x86-64.so.2";
	static char path[400];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s/lib/x86_64-linux-%s/%s", release_dir(row),
			 i ? "/usr" : "", libc_of(row), name);
		if (!access(path, F_OK))
			return path;
	}
	return NULL;
}

static void victim_path(const char *name, char path[512])
{
	const char *dir = getenv("VICTIMS");

	snprintf(path, 512, "%s/%s", dir ? dir : "build/victims", name);
}

/* Executes the program, with the dynamic linker of the row's release if it has one. */
static void execute(const struct row *row, char *const argv[])
{
	const char *root, *libc = libc_of(row);
	char libs[600], ours[512];

	if (row->preload) {
		if (strchr(row->preload, '/'))
			releases_path(row->preload, ours);
		else
			victim_path(row->preload, ours);
		setenv("LD_PRELOAD", access(ours, R_OK) ? row->preload : ours, 1);
	}
	if (row->no_break)
		setenv("NO_BREAK", "1", 1);
	if (row->plain)
		setenv("PLAIN", "1", 1);
	if (row->touch)
		setenv("TOUCH", "1", 1);
	if (!row->release || is_static(row)) {
		execv(argv[0], argv);
	} else {
		root = release_dir(row);
		snprintf(libs, sizeof(libs), "%s/lib/x86_64-linux-%s:%s/usr/lib/x86_64-linux-%s",
			 root, libc, root, libc);
		execl(linker(row), linker(row), "--library-path", libs, argv[0], argv[1], argv[2],
		      argv[3], NULL);
	}
	_exit(127);
}

static void start(struct victim *v, const struct row *row, const char *mode, uint32_t threads)
{
	char program[512], count[16];
	char *argv[] = {program, v->file, (char *)mode, count, NULL};

	victim_path(row->program, program);
	snprintf(count, sizeof(count), "%u", threads);
	snprintf(v->file, sizeof(v->file), "/tmp/memprof-truth-%d", getpid());
	unlink(v->file);
	v->mode = mode;
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (!v->pid)
		execute(row, argv);
}

static void wait_ready(struct victim *v, uint32_t threads)
{
	struct deadline patience = deadline_in_ms(300000);
	struct stat st = {0};
	int fd = -1;

	v->size = sizeof(struct truth) + 2ul * threads * TRUTH_SLOTS * sizeof(struct truth_block);
	while (fd < 0 || st.st_size < (off_t)v->size) {
		assert_false(deadline_passed(&patience));
		assert_int_equal(waitpid(v->pid, NULL, WNOHANG), 0);
		usleep(1000);
		if (fd < 0)
			fd = open(v->file, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			fstat(fd, &st);
	}
	v->truth = mmap(NULL, v->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(v->truth, MAP_FAILED);
	while (atomic_load(&v->truth->ready) < threads) {
		assert_false(deadline_passed(&patience));
		assert_int_equal(waitpid(v->pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
}

static void end(struct victim *v)
{
	kill(v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	munmap(v->truth, v->size);
	unlink(v->file);
}

static const struct heap_block *find(const struct heap *h, uint64_t addr)
{
	size_t lo = 0, hi = h->blocks.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (h->blocks.at[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - h->blocks.at[lo - 1].addr < h->blocks.at[lo - 1].size
		   ? &h->blocks.at[lo - 1]
		   : NULL;
}

static void compare(struct victim *v, struct outcome *o)
{
	size_t slots = (size_t)v->truth->owners * TRUTH_SLOTS, found = 0;
	bool *seen = calloc(o->heap.blocks.n + 1, sizeof(*seen));

	assert_non_null(seen);
	for (size_t i = 0; i < slots; i++) {
		uint64_t addr = atomic_load(&v->truth->block[i].addr);
		const struct heap_block *b = addr ? find(&o->heap, addr) : NULL;

		o->truth += addr != 0;
		o->missing += addr && !b;
		if (!b)
			continue;
		found += !seen[b - o->heap.blocks.at];
		seen[b - o->heap.blocks.at] = true;
		o->other_size += b->addr + b->size != addr + v->truth->block[i].usable;
	}
	o->extra = o->heap.blocks.n - found;
	free(seen);
}

static const struct walker *walker_named(const char *name)
{
	for (size_t i = 0; walkers[i]; i++) {
		if (!strcmp(walkers[i]->name, name))
			return walkers[i];
	}
	fail_msg("no walker is called %s", name);
	return NULL;
}

/* A walk must end whatever it reads. */
static void walk_damaged(struct image *img, const struct walker *walker, size_t sound_blocks)
{
	size_t refused = 0, doubted = 0, wrong = 0;

	for (uint64_t seed = 1; seed <= DAMAGES; seed++) {
		struct heap heap = {0};
		struct mp_err err = {0};

		damage_begin(img, seed, 4096, 65536);
		if (walker->walk(img, &heap, &err))
			refused++;
		else
			doubted += !heap.exact;
		damage_end(img);
		if (heap.exact && heap.blocks.n != sound_blocks)
			wrong++;
		/* The count in a damaged page header can be as high as its type permits. */
		assert_true(heap.blocks.n <= 2 * sound_blocks + 8 * UINT16_MAX);
		heap_free(&heap);
	}
	print_message("# %s, damaged: of %d walks %zu refused, %zu doubted, %zu wrong\n",
		      walker->name, DAMAGES, refused, doubted, wrong);
}

/* Stops the victim, walks its heap, compares, and lets it continue. */
static void look(struct victim *v, const struct row *row, struct outcome *o)
{
	struct stopped at_rest;
	struct image *img = &at_rest.img;
	struct mp_err err = {0};
	int ret;

	memset(o, 0, sizeof(*o));
	stopped_open(&at_rest, v->pid);
	o->ret = ret = walker_named(row->walker)->walk(img, &o->heap, &err);
	if (ret == -ENOENT) /* heap never used: right if the program has no block */
		o->heap.allocator = "none";
	else if (ret && ret != -ENOTSUP)
		fail_msg("%s: %s", row->name, err.what);
	compare(v, o);
	if (!strcmp(v->mode, "park"))
		walk_damaged(img, walker_named(row->walker), o->heap.blocks.n);
	o->resizing = atomic_load(&v->truth->resizing);
	stopped_close(&at_rest);
	print_message("# %s: %s %s: %zu blocks, truth %zu, missing %zu, extra %zu, other size %zu, "
		      "free %lu, cached %lu, metadata %lu, %s%s\n",
		      row->name, o->heap.allocator, o->heap.version, o->heap.blocks.n, o->truth,
		      o->missing, o->extra, o->other_size, o->heap.free_bytes, o->heap.cached_bytes,
		      o->heap.metadata_bytes,
		      o->heap.exact ? "exact" : "not exact: ", o->heap.doubt);
}

/* Return: the number of blocks of the C library and the allocator, with THREADS threads. */
static size_t own_blocks(const struct row *row)
{
	struct victim v = {0};
	struct outcome idle;

	start(&v, row, "idle", THREADS);
	wait_ready(&v, THREADS);
	look(&v, row, &idle);
	heap_free(&idle.heap);
	end(&v);
	return idle.extra;
}

static void check_parked(const struct row *row, size_t own)
{
	struct victim v = {0};
	struct outcome o;

	start(&v, row, "park", THREADS);
	wait_ready(&v, THREADS);
	look(&v, row, &o);
	assert_true(o.truth > 10000);
	assert_int_equal(o.missing, 0);
	assert_int_equal(o.other_size, 0);
	assert_int_equal(o.extra, own);
	assert_true(o.heap.exact);
	assert_int_equal(o.heap.damaged.n, 0);
	heap_free(&o.heap);
	end(&v);
}

/* As heaps/consistent.h: looks again while a thread is in the middle of changing a heap. */
static void look_between_changes(struct victim *v, const struct row *row, struct outcome *o)
{
	for (int i = 1; i < MOST_LOOKS; i++) {
		look(v, row, o);
		if (!o->heap.passing)
			return;
		assert_false(o->heap.exact);
		heap_free(&o->heap);
	}
	look(v, row, o);
}

static void check_running(const struct row *row, size_t own)
{
	struct victim v = {0};
	struct outcome o;

	start(&v, row, "run", THREADS);
	wait_ready(&v, THREADS);
	for (int i = 0; i < LOOKS; i++) {
		look_between_changes(&v, row, &o);
		assert_true(o.missing <= THREADS);
		assert_true(o.extra <= own + THREADS * (1 + row->batch) + o.resizing);
		heap_free(&o.heap);
		usleep(20000);
	}
	end(&v);
}

static void skip_without_release(const struct row *row)
{
	char program[512];

	if (row->preload && strchr(row->preload, '/')) {
		releases_path(row->preload, program);
		if (access(program, F_OK)) {
			print_message("# %s: no %s, see scripts/releases\n", row->name, program);
			skip();
		}
	}
	victim_path(row->program, program);
	if (row->release && (is_static(row) ? access(program, F_OK) : !linker(row))) {
		print_message("# %s: no libraries in %s, see scripts/releases\n", row->name,
			      release_dir(row));
		skip();
	}
}

static void test_refused(void **state)
{
	const struct row *row = *state;
	struct victim v = {0};
	struct outcome o;

	skip_without_release(row);
	start(&v, row, "idle", THREADS);
	wait_ready(&v, THREADS);
	look(&v, row, &o);
	assert_int_equal(o.ret, -ENOTSUP);
	assert_string_equal(o.heap.allocator, row->walker);
	assert_int_equal(o.heap.blocks.n + o.heap.owned.n, 0);
	end(&v);
}

static void test_row(void **state)
{
	const struct row *row = *state;
	size_t own;

	skip_without_release(row);
	own = own_blocks(row);
	check_parked(row, own);
	check_running(row, own);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* An argument is a pattern for cmocka_set_test_filter(), which selects rows by name. */
int main(int argc, char **argv)
{
	struct CMUnitTest tests[COUNT(rows) + COUNT(refused_rows)] = {{0}};
	size_t n = 0;

	for (size_t i = 0; i < COUNT(tests); i++) {
		bool refused = i >= COUNT(rows);
		const struct row *row = refused ? &refused_rows[i - COUNT(rows)] : &rows[i];

		if (row->slow && !getenv("MEMPROF_FULL"))
			continue;
		tests[n++] = (struct CMUnitTest){.name = row->name,
						 .test_func = refused ? test_refused : test_row,
						 .initial_state = (void *)row};
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("walkers", tests, n, NULL, NULL);
}
