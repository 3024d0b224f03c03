/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds a random heap and says what each variable, frame and block of it retains:
 *
 *	random_graph SEED BLOCKS NOISE
 *
 * Lists, rings, trees, hash tables, arrays, records and large blocks hang on variables of each kind,
 * on thread-local variables, on a mapping and on the frames of threads, with pointers to the start
 * of blocks, to their middle and with tag bits.  NOISE of 10,000 blocks have a word that only looks
 * like a pointer, or a pointer that does not look like one.
 *
 * Each thing is printed with what it retains by the program's own pointers (which is true), and by
 * everything that looks like a pointer (which is the best that can be seen from outside).  WRONG are
 * the bytes that only the latter has:
 *
 *	root KIND NAME TID BYTES BLOCKS  BYTES BLOCKS EXACT WRONG
 *	block ADDRESS SIZE BYTES BLOCKS  BYTES BLOCKS EXACT WRONG ROOTS
 *	unreachable BYTES BLOCKS  BYTES BLOCKS
 *	ready
 *
 * Nothing of the program but the heap and its roots has an address of a block: what it needs to
 * know of them is disguised, and stacks are cleared.
 */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "random_truth.h"

#define WORKERS	  3
#define MAX_EDGES (4 * MAX_NODES)
#define MAX_ROOTS 128
#define ROOTWORDS 8
#define WORD	  ((uint32_t)sizeof(uintptr_t))
#define ODD_SIZE  1624 /* from here on each block has a size of its own */
#define DISGUISE  ((uintptr_t)0xb6d54ad593b15a6dull)

enum how { EXACT, INNER, LOW_TAG, HIGH_TAG, NUMBER, DEAD, HIDDEN };
struct link {
	uint32_t from, to, word, offset;
	uint8_t how;
};

enum root_kind { VARIABLE, TLS, MAPPING, FRAME };
static const char *const kind_name[] = {"variable", "thread-local variable", "mapping", "frame"};
struct root {
	const char *name;
	void *memory; /* of variables and mappings */
	uint32_t words, used;
	uint8_t kind, thread;
};

/* What is known of the blocks, by number, in mappings. */
static uint32_t *size, *usable, *word_base, nblocks, odd;
static uintptr_t *disguised; /* address */
static uint8_t *owner;	     /* thread that allocates it */
static bool *taken, *reused;
static struct link *link_;
static uint32_t nlinks;

static struct root root[MAX_ROOTS];
static uint32_t nroots;
static uintptr_t (*root_word)[ROOTWORDS]; /* disguised */

static pid_t tid[WORKERS + 1];
static pthread_barrier_t barrier;
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed * 0x2545f4914f6cdd1dull >> 33) % n;
}

static bool chance(uint32_t of_10000)
{
	return below(10000) < of_10000;
}

/* ------------------------------------------------------------- roots -- */

#define VARIABLES(x)                                                                               \
	x(g_one, 1) x(g_two, 2) x(g_table, 8) x(g_a, 1) x(g_b, 1) x(g_c, 1) x(g_state, 4)
#define STATICS(x)	       x(s_one, 1) x(s_list, 2) x(s_cache, 8) x(s_d, 1) x(s_e, 1) x(s_f, 3)
#define DEFINE(name, n)	       uintptr_t name[n];
#define DEFINE_STATIC(name, n) __attribute__((used)) static volatile uintptr_t name[n];
VARIABLES(DEFINE)
STATICS(DEFINE_STATIC)
__thread volatile uintptr_t t_one, t_many[4];

static void add_root(uint8_t kind, const char *name, volatile void *memory, uint32_t words,
		     uint32_t thread)
{
	root[nroots++] = (struct root){name, (void *)memory, words, 0, kind, (uint8_t)thread};
}

/* A mapping that the kernel does not join to others. */
static void *lone_mapping(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_READ | PROT_WRITE))
		abort();
	return p + page;
}

__attribute__((noinline)) static void make_roots(void)
{
	__attribute__((used)) static volatile uintptr_t kept[2];

#define ADD(name, n) add_root(VARIABLE, #name, name, n, 0);
	VARIABLES(ADD)
	STATICS(ADD)
	add_root(VARIABLE, "make_roots()::kept", kept, 2, 0);
	add_root(MAPPING, "mapping", lone_mapping(), ROOTWORDS, 0);
	for (uint32_t i = 1; i <= WORKERS; i++) {
		add_root(TLS, "t_one", NULL, 1, i);
		add_root(TLS, "t_many", NULL, 4, i);
		add_root(FRAME, "hold_a", NULL, 2, i);
		add_root(FRAME, "hold_b", NULL, 3, i);
		add_root(FRAME, "hold_c", NULL, 4, i);
	}
}

/* ------------------------------------------------------------- the plan -- */

static uint32_t fresh(uint32_t bytes)
{
	uint32_t b = nblocks++;

	if (nblocks + MAX_ROOTS >= MAX_NODES)
		abort();
	size[b] = bytes;
	word_base[b + 1] = word_base[b] + bytes / WORD;
	owner[b] = (uint8_t)below(WORKERS + 1);
	return b;
}

/* A block whose first words are for certain links. */
static uint32_t fresh_with(uint32_t bytes, uint32_t words)
{
	uint32_t b = fresh(bytes);

	memset(taken + word_base[b], 1, words);
	return b;
}

static uint32_t common_size(void)
{
	static const uint16_t sizes[] = {32, 40, 48, 56, 64, 72, 96, 104, 128, 200, 256, 512, 1000};

	return sizes[below(sizeof(sizes) / sizeof(sizes[0]))];
}

/* The size of a record: often one that no other block has, so that it has a line of its own. */
static uint32_t any_size(void)
{
	return chance(4000) ? ODD_SIZE + 16 * odd++ : common_size();
}

/* Return: a word of the node that is not used yet, or UINT32_MAX. */
static uint32_t free_word(uint32_t node)
{
	if (node >= MAX_NODES) {
		struct root *r = &root[node - MAX_NODES];

		return r->used < r->words ? r->used++ : UINT32_MAX;
	}
	for (int tries = 0; tries < 8; tries++) {
		uint32_t w = below(size[node] / WORD);

		if (taken[word_base[node] + w])
			continue;
		taken[word_base[node] + w] = true;
		return w;
	}
	return UINT32_MAX;
}

static uint8_t any_way(void)
{
	uint32_t r = below(100);

	return r < 75 ? EXACT : r < 87 ? INNER : r < 95 || WORD == 4 ? LOW_TAG : HIGH_TAG;
}

static bool add_link(uint32_t from, uint32_t word, uint32_t to, uint8_t how)
{
	struct link *l = &link_[nlinks];

	if (word == UINT32_MAX || nlinks + 1 == MAX_EDGES)
		return false;
	nlinks++;
	*l = (struct link){from, to, word, 0, how};
	if (how == INNER)
		l->offset = 1 + below(size[to] - 1);
	if (how == LOW_TAG)
		l->offset = 1 + below(7);
	if (how == NUMBER)
		l->offset = below(size[to]);
	return true;
}

static bool point(uint32_t from, uint32_t to, uint8_t how)
{
	return add_link(from, free_word(from), to, how);
}

/* Return: a root, or a block with a number below @limit. */
static uint32_t any_node(uint32_t limit, uint32_t of_roots)
{
	return !limit || chance(of_roots) ? MAX_NODES + below(nroots) : below(limit);
}

/* Lets something that is there already point to the block. */
static void hang(uint32_t block, uint32_t limit)
{
	if (chance(300))
		return; /* leaked */
	for (int tries = 0; tries < 50; tries++) {
		if (point(any_node(limit, 2500), block, any_way()))
			return;
	}
}

/* A record with some others below it. */
static uint32_t make_record(void)
{
	uint32_t it = fresh(any_size());

	for (uint32_t i = below(5); i; i--)
		point(it, fresh(any_size()), any_way());
	return it;
}

/* Intrusive lists point to a member, rings are doubly linked. */
static uint32_t make_list(void)
{
	const uint32_t bytes = common_size(), first = nblocks;
	const bool ring = chance(3000), twice = chance(4000);
	const uint8_t how = chance(7000) ? EXACT : any_way();
	uint32_t last = fresh_with(bytes, 2);

	for (uint32_t i = 2 + below(60); i; i--) {
		uint32_t node = fresh_with(bytes, 2);

		add_link(last, 0, node, how);
		if (twice)
			add_link(node, 1, last, how);
		if (chance(2000))
			point(node, make_record(), any_way());
		last = node;
	}
	if (ring)
		add_link(last, 0, first, how);
	return first;
}

static uint32_t make_tree(void)
{
	const uint32_t bytes = common_size(), n = 2 + below(60);
	const bool parents = chance(5000);
	uint32_t node[64];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = i ? below(i) : 0;

		node[i] = fresh(bytes);
		if (i && !point(node[up], node[i], EXACT))
			point(node[i - 1], node[i], EXACT);
		if (i && parents)
			point(node[i], node[up], EXACT);
		if (chance(1500))
			point(node[i], make_record(), any_way());
	}
	return node[0];
}

static uint32_t make_hash(void)
{
	const uint32_t bytes = common_size(), buckets = 8u << below(4),
		       table = fresh_with(buckets * WORD, buckets);
	uint32_t *last = calloc(buckets, sizeof(*last));

	for (uint32_t i = below(2 * buckets); i; i--) {
		uint32_t at = below(buckets), node = fresh_with(bytes, 1);

		if (last[at])
			add_link(last[at], 0, node, EXACT);
		else
			add_link(table, at, node, EXACT);
		last[at] = node;
		if (chance(3000))
			point(node, make_record(), any_way());
	}
	free(last);
	return table;
}

static uint32_t make_array(void)
{
	const uint32_t n = 1 + below(64), it = fresh_with(n * WORD, n);
	const uint8_t how = chance(7000) ? EXACT : any_way();

	for (uint32_t i = 0; i < n; i++) {
		if (chance(8000))
			add_link(it, i, chance(3000) ? make_record() : fresh(any_size()), how);
	}
	return it;
}

static uint32_t make_large(void)
{
	uint32_t it = fresh((chance(3000) ? 1500000 : 150000) + 16 * odd++);

	for (uint32_t i = below(10); i; i--)
		point(it, make_record(), any_way());
	return it;
}

static void make_plan(uint32_t blocks)
{
	static uint32_t (*const make[])(void) = {make_record, make_record, make_list, make_list,
						 make_tree,   make_hash,   make_array};
	static const uint16_t cross[] = {0, 100, 300, 1000, 3000};
	const uint16_t crossing = cross[below(5)];
	uint32_t crossed;

	while (nblocks < blocks) {
		uint32_t limit = nblocks;

		hang(chance(50) ? make_large() : make[below(7)](), limit);
	}
	for (uint32_t i = 0; i < nblocks; i++) {
		if (chance(crossing))
			point(any_node(nblocks, 1000), below(nblocks), any_way());
	}
	/* Both ways from one mapping. */
	crossed = below(nblocks);
	for (uint32_t r = 0; r < nroots; r++) {
		if (root[r].kind != MAPPING)
			continue;
		point(MAX_NODES + r, crossed, INNER);
		point(MAX_NODES + r, crossed, EXACT);
	}
}

/* Return: a block, large ones more often: where a number that looks like an address most likely
 * leads to. */
static uint32_t any_byte(void)
{
	uint32_t at = below(word_base[nblocks]), b = 0;

	while (word_base[b + 1] <= at)
		b++;
	return b;
}

static void make_noise(uint32_t of_10000)
{
	const uint32_t n = nblocks, links = nlinks;

	for (uint32_t i = 0; i < n; i++) {
		if (!chance(of_10000))
			continue;
		switch (below(5)) {
		case 0: /* a number that looks like an address */
			point(any_node(n, 500), any_byte(), NUMBER);
			break;
		case 1: /* a pointer that the program does not use any more */
		case 2:
			point(any_node(n, 500), below(n), DEAD);
			break;
		case 3: /* a block with old pointers in it */
			reused[fresh(common_size())] = true;
			hang(nblocks - 1, n);
			break;
		default: /* a pointer that does not look like one */
			link_[below(links)].how = HIDDEN;
		}
	}
}

/* ------------------------------------------------------------- the heap -- */

__attribute__((noinline)) static uintptr_t address(uint32_t block)
{
	return disguised[block] ^ DISGUISE;
}

static void set_address(uint32_t block, void *p)
{
	disguised[block] = (uintptr_t)p ^ DISGUISE;
	usable[block] = (uint32_t)malloc_usable_size(p);
}

/* A block that had pointers to other blocks before it was freed and allocated again. */
__attribute__((noinline)) static void reuse(uint32_t block)
{
	volatile uintptr_t *p = malloc(size[block]);

	for (uint32_t i = 4; i < size[block] / WORD; i++)
		p[i] = address(below(block));
	free((void *)p);
	p = malloc(size[block]);
	/* What the allocator itself wrote. */
	for (uint32_t i = 0; i < 4 && i < size[block] / WORD; i++)
		p[i] = 0;
	set_address(block, (void *)p);
}

/* Allocates this thread's blocks, and others between them, which it frees. */
__attribute__((noinline)) static void allocate(uint8_t me)
{
	void *spare[64] = {0};
	uint32_t n = 0;

	for (uint32_t b = 0; b < nblocks; b++) {
		if (owner[b] != me || reused[b])
			continue;
		set_address(b, calloc(1, size[b]));
		if (b % 2 == 0) {
			free(spare[n % 64]);
			spare[n % 64] = calloc(1, 24 + b * 7919u % 2000);
			n++;
		}
	}
	for (uint32_t i = 0; i < 64; i++)
		free(spare[i]);
}

static void allocate_reused(void)
{
	for (uint32_t b = 0; b < nblocks; b++) {
		if (reused[b])
			reuse(b);
	}
}

static uintptr_t value_of(const struct link *l)
{
	uintptr_t v = address(l->to) + l->offset;

	if (l->how == HIGH_TAG)
		v |= (uintptr_t)(1 + l->to % 100) << (WORD * 8 - 9);
	return l->how == HIDDEN ? ~v : v;
}

__attribute__((noinline)) static void write_links(void)
{
	for (uint32_t i = 0; i < nlinks; i++) {
		const struct link *l = &link_[i];
		const uintptr_t v = value_of(l);
		struct root *r = l->from < MAX_NODES ? NULL : &root[l->from - MAX_NODES];

		if (!r)
			((volatile uintptr_t *)address(l->from))[l->word] = v;
		else if (r->memory)
			((volatile uintptr_t *)r->memory)[l->word] = v;
		if (r)
			root_word[l->from - MAX_NODES][l->word] = v ^ DISGUISE;
	}
}

/* ------------------------------------------------------------- the truth -- */

static uint32_t *by_address;

static int lower(const void *a, const void *b)
{
	uintptr_t x = address(*(const uint32_t *)a), y = address(*(const uint32_t *)b);

	return x < y ? -1 : x > y;
}

/* Return: the block that the word looks like an address of, or NO_NODE. */
static uint32_t looks_like(uintptr_t word, bool *exact)
{
	const uintptr_t mask = WORD == 8 ? (uintptr_t)0x7fffffffffffull : UINTPTR_MAX;
	uint32_t low = 0, high = nblocks, b;
	uintptr_t start;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (address(by_address[middle]) <= (word & mask))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NO_NODE;
	b = by_address[low - 1];
	start = address(b);
	/* The address of the end counts, too. */
	if ((word & mask) - start > usable[b] ||
	    (word > mask && (word & mask & ~(uintptr_t)7) != start))
		return NO_NODE;
	*exact = word == start;
	return b;
}

static void look_at(struct truth_graph *g, uint32_t from, uintptr_t word)
{
	bool exact;
	uint32_t to = word >= 65536 ? looks_like(word, &exact) : NO_NODE;

	if (to != NO_NODE)
		truth_edge(g, from, to, exact);
}

/* The graph that can be seen from outside. */
static void see(struct truth_graph *g)
{
	by_address = area(nblocks * sizeof(*by_address));
	for (uint32_t b = 0; b < nblocks; b++)
		by_address[b] = b;
	qsort(by_address, nblocks, sizeof(*by_address), lower);
	for (uint32_t b = 0; b < nblocks; b++) {
		const uintptr_t *word = (const uintptr_t *)address(b);

		for (uint32_t i = 0; i < usable[b] / WORD; i++)
			look_at(g, b, word[i]);
	}
	for (uint32_t r = 0; r < nroots; r++) {
		for (uint32_t i = 0; i < root[r].words; i++)
			look_at(g, nblocks + r, root_word[r][i] ^ DISGUISE);
	}
}

/* The graph of the program's pointers. */
static void know(struct truth_graph *g)
{
	for (uint32_t i = 0; i < nlinks; i++) {
		const struct link *l = &link_[i];

		if (l->how != NUMBER && l->how != DEAD)
			truth_edge(g, l->from < MAX_NODES ? l->from : nblocks + l->from - MAX_NODES,
				   l->to, l->how == EXACT);
	}
}

static void solve(struct truth_graph *g, void (*make)(struct truth_graph *), struct truth_answer *a)
{
	bool *weak = area(nblocks + nroots);

	truth_new(g, MAX_EDGES + 65536);
	g->blocks = nblocks;
	g->nodes = nblocks + nroots;
	g->bytes = usable;
	g->weak = weak;
	for (uint32_t r = 0; r < nroots; r++)
		weak[nblocks + r] = root[r].kind == FRAME;
	make(g);
	truth_solve(g, a);
}

static void print_node(const struct truth_answer *t, const struct truth_answer *s, uint32_t wrong,
		       uint32_t node)
{
	printf(" %u %u  %u %u %u %u", t->bytes[node], t->blocks[node], s->bytes[node],
	       s->blocks[node], s->exact[node], wrong);
}

__attribute__((noinline)) static void say(void)
{
	uint32_t *wrong = area((nblocks + nroots) * sizeof(*wrong));
	struct truth_graph true_graph, seen_graph;
	struct truth_answer t, s;

	solve(&true_graph, know, &t);
	solve(&seen_graph, see, &s);
	truth_compare(&seen_graph, &s, &t, wrong);
	for (uint32_t r = 0; r < nroots; r++) {
		printf("root %s|%s", kind_name[root[r].kind], root[r].name);
		if (root[r].kind == MAPPING)
			printf(" at %p", root[r].memory);
		printf(" %d", tid[root[r].thread]);
		print_node(&t, &s, wrong[nblocks + r], nblocks + r);
		printf("\n");
	}
	for (uint32_t b = 0; b < nblocks; b++) {
		printf("block %" PRIxPTR " %u", address(b), usable[b]);
		print_node(&t, &s, wrong[b], b);
		printf(" %u\n", s.roots[b]);
	}
	printf("unreachable %u %u  %u %u\n", t.unreached_bytes, t.unreached, s.unreached_bytes,
	       s.unreached);
	fflush(stdout);
}

/* ------------------------------------------------------------- threads -- */

/* Overwrites what other functions left on the stack. */
__attribute__((noinline)) static void clear_stack(void)
{
	volatile char bytes[64 << 10];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

static uint32_t root_of(uint32_t thread, uint8_t kind, uint32_t nth)
{
	uint32_t r = 0;

	while (root[r].thread != thread || root[r].kind != kind || nth--)
		r++;
	return r;
}

__attribute__((noinline)) static uintptr_t value(uint32_t r, uint32_t word)
{
	return root_word[r][word] ^ DISGUISE;
}

/* Leaves addresses of blocks that variables keep below the stack pointer: they hold nothing. */
__attribute__((noinline)) static void leave_dead_frame(void)
{
	volatile uintptr_t dead[512];

	for (uint32_t i = 0; i < 512; i++)
		dead[i] = root[i % nroots].kind == VARIABLE ? value(i % nroots, 0) : 0;
	(void)dead[0];
}

__attribute__((noinline)) static void wait_for_ever(void)
{
	clear_stack();
	leave_dead_frame();
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

/* A function whose frame holds some words. */
#define HOLD(name, nth, words, next)                                                               \
	__attribute__((noinline)) static void name(uint32_t me)                                    \
	{                                                                                          \
		volatile uintptr_t held[words];                                                    \
                                                                                                   \
		for (uint32_t i = 0; i < (words); i++)                                             \
			held[i] = value(root_of(me, FRAME, nth), i);                               \
		next;                                                                              \
		held[0] = held[1];                                                                 \
	}
HOLD(hold_c, 2, 4, wait_for_ever())
HOLD(hold_b, 1, 3, hold_c(me))
HOLD(hold_a, 0, 2, hold_b(me))

__attribute__((noinline)) static void set_thread_local(uint32_t me)
{
	t_one = value(root_of(me, TLS, 0), 0);
	for (uint32_t i = 0; i < 4; i++)
		t_many[i] = value(root_of(me, TLS, 1), i);
}

static void *worker(void *arg)
{
	const uint8_t me = (uint8_t)(uintptr_t)arg;

	tid[me] = gettid();
	prctl(PR_SET_NAME, "worker");
	pthread_barrier_wait(&barrier);
	for (int turn = 1; turn <= WORKERS; turn++) {
		/* In turn, so that a seed gives the same addresses but for randomization. */
		if (turn == me)
			allocate(me);
		pthread_barrier_wait(&barrier);
	}
	pthread_barrier_wait(&barrier);
	set_thread_local(me);
	clear_stack();
	hold_a(me);
	return NULL;
}

__attribute__((noinline)) static void build(uint32_t blocks, uint32_t noise)
{
	pthread_t thread;

	make_roots();
	make_plan(blocks);
	make_noise(noise);
	for (uintptr_t i = 1; i <= WORKERS; i++)
		pthread_create(&thread, NULL, worker, (void *)i);
	pthread_barrier_wait(&barrier);
	allocate(0);
	for (int turn = 1; turn <= WORKERS; turn++)
		pthread_barrier_wait(&barrier);
	allocate_reused();
	write_links();
	say();
}

int main(int argc, char **argv)
{
	const uint32_t nodes = MAX_NODES + 2, blocks = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000;

	seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 0x9e3779b97f4a7c15ull + 1;
	size = area(nodes * sizeof(*size));
	usable = area(nodes * sizeof(*usable));
	word_base = area(nodes * sizeof(*word_base));
	disguised = area(nodes * sizeof(*disguised));
	owner = area(nodes);
	reused = area(nodes);
	taken = area(64 << 20);
	link_ = area(MAX_EDGES * sizeof(*link_));
	root_word = area(MAX_ROOTS * sizeof(*root_word));
	setvbuf(stdout, area(1 << 16), _IOFBF, 1 << 16);
	pthread_barrier_init(&barrier, NULL, WORKERS + 1);
	below(2);
	build(blocks, argc > 3 ? (uint32_t)atoi(argv[3]) : 0);
	clear_stack();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
