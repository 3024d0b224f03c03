/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists, trees, hash tables and arrays in the idioms of C, and blocks that only look a bit like these.
 * Prints for each of them: name, address of the variable, elements, blocks and bytes that implement
 * it; for decoys, the usable size of a block.  Then "ready".
 *
 * With the argument "busy", threads change two of the lists, and allocate, all the time.
 */
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sum {
	size_t elements, blocks, bytes;
};

static void *block(struct sum *s, size_t size)
{
	void *p = calloc(1, size);

	s->blocks++;
	s->bytes += malloc_usable_size(p);
	return p;
}

static void *element(struct sum *s, size_t size)
{
	s->elements++;
	return block(s, size);
}

static void print(const char *name, const void *addr, const struct sum *s)
{
	printf("%s %lx %zu %zu %zu\n", name, (long)addr, s->elements, s->blocks, s->bytes);
}

static void decoy(const char *name, void *p)
{
	printf("decoy:%s %zu\n", name, malloc_usable_size(p));
}

static unsigned int number(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 11);
}

/* ------------------------------------------------------------- lists -- */

struct single {
	long value[4];
	struct single *next;
};
struct single *g_single;

static void make_single(void)
{
	struct sum s = {0};

	for (int i = 0; i < 5000; i++) {
		struct single *n = element(&s, sizeof(*n));
		/* Blocks of the same size that are no nodes. */
		char *text = malloc(sizeof(*n));

		memset(text, 'a' + i % 26, sizeof(*n));
		text[sizeof(*n) - 1] = 0;
		n->value[0] = (long)text;
		n->next = g_single;
		g_single = n;
	}
	print("g_single", &g_single, &s);
}

struct both {
	long value[5];
	struct both *previous, *next;
};
struct {
	long count;
	struct both *head, *tail;
} g_both;

static void make_both(void)
{
	struct sum s = {0};

	for (int i = 0; i < 3000; i++) {
		struct both *n = element(&s, sizeof(*n));

		n->previous = g_both.tail;
		if (n->previous)
			n->previous->next = n;
		else
			g_both.head = n;
		g_both.tail = n;
	}
	print("g_both", &g_both, &s);
}

struct link {
	struct link *next, *previous;
};
struct entry {
	long value[5];
	struct link link;
	long more[3];
};
struct link g_intrusive;

static void add_link(struct link *head, struct link *l)
{
	l->next = head;
	l->previous = head->previous;
	head->previous->next = l;
	head->previous = l;
}

static void make_intrusive(void)
{
	struct sum s = {0};

	g_intrusive.next = g_intrusive.previous = &g_intrusive;
	for (int i = 0; i < 4000; i++) {
		struct entry *e = element(&s, sizeof(*e));

		add_link(&g_intrusive, &e->link);
	}
	print("g_intrusive", &g_intrusive, &s);
}

/* As TAILQ of BSD: the way back leads to the word that leads to the element. */
struct tail_entry {
	long value[7];
	struct tail_entry *next, **previous;
};
struct {
	struct tail_entry *first, **last;
} g_tail;

static void make_tail(void)
{
	struct sum s = {0};

	g_tail.last = &g_tail.first;
	for (int i = 0; i < 1500; i++) {
		struct tail_entry *e = element(&s, sizeof(*e));

		e->previous = g_tail.last;
		*g_tail.last = e;
		g_tail.last = &e->next;
	}
	print("g_tail", &g_tail, &s);
}

/* Many short lists. */
struct item {
	struct item *next;
	long value[12];
};
struct session {
	long value[14];
	struct item *items;
};
struct session **g_sessions;

static void make_sessions(void)
{
	struct sum s = {0}, array = {0}, other = {0};

	g_sessions = block(&array, 2000 * sizeof(*g_sessions));
	for (int i = 0; i < 2000; i++) {
		g_sessions[i] = block(&other, sizeof(**g_sessions));
		for (int j = 0; j < 5; j++) {
			struct item *n = element(&s, sizeof(*n));

			n->next = g_sessions[i]->items;
			g_sessions[i]->items = n;
		}
		array.elements++;
	}
	print("items", NULL, &s);
	print("g_sessions", &g_sessions, &array);
}

/* ------------------------------------------------------------- trees -- */

struct leaf {
	struct leaf *left, *right;
	unsigned int key;
	long value[14];
};
struct leaf *g_tree;

static void make_tree(void)
{
	struct sum s = {0};

	for (int i = 0; i < 2000; i++) {
		struct leaf *n = element(&s, sizeof(*n)), **at = &g_tree;

		n->key = number();
		while (*at)
			at = n->key < (*at)->key ? &(*at)->left : &(*at)->right;
		*at = n;
	}
	print("g_tree", &g_tree, &s);
}

struct branch {
	unsigned int key;
	struct branch *parent, *left, *right;
	long value[16];
};
struct branch *g_parents;

static void make_parents(void)
{
	struct sum s = {0};

	for (int i = 0; i < 2500; i++) {
		struct branch *n = element(&s, sizeof(*n)), **at = &g_parents;

		n->key = number();
		while (*at) {
			n->parent = *at;
			at = n->key < (*at)->key ? &(*at)->left : &(*at)->right;
		}
		*at = n;
	}
	print("g_parents", &g_parents, &s);
}

/* ------------------------------------------------------------- hash tables -- */

struct hashed {
	unsigned int key;
	struct hashed *next;
	struct link used;
	long value[18];
};
struct {
	long count;
	struct hashed **table;
} g_hash;
struct link g_used;

static void make_hash(void)
{
	struct sum s = {0}, used;

	g_used.next = g_used.previous = &g_used;
	g_hash.table = block(&s, 4096 * sizeof(*g_hash.table));
	for (int i = 0; i < 4000; i++) {
		struct hashed *n = element(&s, sizeof(*n)), **at;

		n->key = number();
		at = &g_hash.table[n->key % 4096];
		n->next = *at;
		*at = n;
		add_link(&g_used, &n->used);
	}
	used = s;
	used.blocks--;
	used.bytes -= malloc_usable_size(g_hash.table);
	print("g_hash", &g_hash, &s);
	print("g_used", &g_used, &used);
}

struct bucketed {
	struct bucketed *next;
	void *object; /* of the same size */
	long value[23];
};
struct bucketed *g_buckets[1024];

static void make_buckets(void)
{
	struct sum s = {0};

	for (int i = 0; i < 1500; i++) {
		struct bucketed *n = element(&s, sizeof(*n)), **at = &g_buckets[number() % 1024];

		n->object = calloc(1, sizeof(*n));
		n->next = *at;
		*at = n;
	}
	print("g_buckets", g_buckets, &s);
}

/* ------------------------------------------------------------- arrays -- */

void **g_array;

static void make_array(void)
{
	struct sum s = {0}, objects = {0};

	g_array = block(&s, 1024 * sizeof(*g_array));
	for (int i = 0; i < 700; i++) {
		g_array[i] = block(&objects, 28 * sizeof(long));
		s.elements++;
	}
	print("g_array", &g_array, &s);
}

/* ------------------------------------------------------------- decoys -- */

void **g_random, **g_few, **g_pairs;
double **g_matrix;
char **g_texts;

static void make_decoys(void)
{
	enum { N = 2000 };
	struct sum s = {0};

	/* Three pointers to random blocks of the same size in each; one in each; in one of eight. */
	g_random = calloc(N, sizeof(*g_random));
	g_few = calloc(N, sizeof(*g_few));
	g_pairs = calloc(N, sizeof(*g_pairs));
	for (int i = 0; i < N; i++) {
		g_random[i] = block(&s, 30 * sizeof(long));
		g_few[i] = block(&s, 32 * sizeof(long));
		g_pairs[i] = block(&s, 34 * sizeof(long));
	}
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 3; j++)
			((void **)g_random[i])[j] = g_random[number() % N];
		if (i % 8 == 0)
			((void **)g_few[i])[0] = g_few[number() % N];
		/* Each second one leads to its neighbour, which does not lead back. */
		if (i % 2)
			((void **)g_pairs[i])[0] = g_pairs[i - 1];
	}
	decoy("random", g_random[0]);
	decoy("few", g_few[0]);
	decoy("pairs", g_pairs[0]);
	g_matrix = calloc(64, sizeof(*g_matrix));
	for (int i = 0; i < 64; i++) {
		g_matrix[i] = malloc(300 * sizeof(**g_matrix));
		for (int j = 0; j < 300; j++)
			g_matrix[i][j] = 1.0 / (1 + number());
	}
	decoy("matrix", g_matrix[0]);
	g_texts = calloc(64, sizeof(*g_texts));
	for (int i = 0; i < 64; i++) {
		g_texts[i] = malloc(3000);
		memset(g_texts[i], 'x', 2999);
		g_texts[i][2999] = 0;
	}
	decoy("texts", g_texts[0]);
}

/* ------------------------------------------------------------- threads -- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *change(void *unused)
{
	(void)unused;
	for (;;) {
		struct both *b;
		struct link *l;

		free(malloc(100));
		pthread_mutex_lock(&lock);
		/* The first one becomes the last one. */
		b = g_both.head;
		g_both.head = b->next;
		b->next->previous = NULL;
		b->next = NULL;
		b->previous = g_both.tail;
		g_both.tail->next = b;
		g_both.tail = b;
		l = g_intrusive.next;
		l->next->previous = &g_intrusive;
		g_intrusive.next = l->next;
		add_link(&g_intrusive, l);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	make_single();
	make_both();
	make_intrusive();
	make_tail();
	make_sessions();
	make_tree();
	make_parents();
	make_hash();
	make_buckets();
	make_array();
	make_decoys();
	for (int i = 0; argc > 1 && !strcmp(argv[1], "busy") && i < 2; i++)
		pthread_create(&thread, NULL, change, NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
