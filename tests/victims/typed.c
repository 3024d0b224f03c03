/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C structures that lead to each other from variables of all kinds.  Prints how many blocks memprof should
 * give each type, by their declarations; then "ready". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS 300
#define LINKS	 2000

struct buffer {
	size_t used;
	unsigned char data[]; /* a flexible array member */
};
struct address {
	char *host;
	struct route *route; /* only declared here */
};
struct session {
	unsigned int id : 20, open : 1; /* bit fields are no pointers */
	struct session *next;
	struct buffer *in, *out;
	struct address peer[2];
	union {
		struct buffer *spare;
		unsigned long number; /* with the address of a block */
	} either;
	union {
		struct buffer *one;
		struct buffer *other;
	} same;
	void *anything;
	void (*call)(void);
	char padding[40];
};
struct route {
	int hops;
	struct route *via; /* in a circle */
	double weight[5];
};
struct base {
	int kind;
	struct base *next;
};
struct larger {
	struct base base;
	long more[40];
};
struct __attribute__((packed)) odd {
	char c;
	struct route *route;
	char rest[80];
};
struct leaf {
	struct leaf *left, *right;
	long value;
};
struct hidden; /* defined nowhere */

struct session *table[1024];
static struct session *first;
struct buffer **buffers;
struct session *grown;
static struct base *volatile bases;
struct odd packed;
struct hidden *opaque;
void *anything;
double *numbers;
int *dangling_end;
__thread struct leaf *t_tree;
struct {
	struct {
		struct leaf *leaf;
	} in, of[3];
} deep;

static struct buffer *new_buffer(size_t n)
{
	struct buffer *b = calloc(1, sizeof(*b) + n);

	b->used = n;
	return b;
}

static struct session *new_session(unsigned int i)
{
	struct session *s = calloc(1, sizeof(*s));

	s->id = i;
	s->in = new_buffer(100 + i);
	s->out = new_buffer(5000);
	s->peer[1].host = strcpy(calloc(1, 200), "a host's name");
	return s;
}

static struct leaf *grow(int levels)
{
	struct leaf *l = levels ? calloc(1, sizeof(*l)) : NULL;

	if (l) {
		l->left = grow(levels - 1);
		l->right = grow(levels - 1);
	}
	return l;
}

static struct route *ring(void)
{
	struct route *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	a->via = b;
	b->via = a;
	return a;
}

static void *worker(void *unused)
{
	(void)unused;
	t_tree = grow(8); /* 255 */
	printf("leaf %d\n", 255 + 4);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
	return NULL;
}

static void *volatile *keep;

int main(void)
{
	static struct session *of_function;
	struct larger *l;
	pthread_t t;

	for (unsigned int i = 0; i < SESSIONS; i++)
		table[i * 3 % 1024] = new_session(i);
	for (unsigned int i = 0; i < LINKS; i++) {
		struct session *s = calloc(1, sizeof(*s));

		s->next = first;
		first = s;
	}
	of_function = new_session(7);
	/* A union whose members differ is not followed, one whose members agree is; void * is not. */
	table[0]->either.spare = new_buffer(3333);
	table[0]->same.one = new_buffer(4444);
	table[0]->anything = calloc(1, 5555);
	table[0]->peer[0].route = ring();
	anything = calloc(1, 6666);
	opaque = calloc(1, 7777);
	packed.route = ring();
	buffers = calloc(64, sizeof(*buffers));
	for (int i = 0; i < 64; i++)
		buffers[i] = new_buffer(64);
	grown = calloc(20, sizeof(*grown));
	for (int i = 0; i < 20; i++)
		grown[i].in = new_buffer(10);
	for (int i = 0; i < 5; i++) {
		l = calloc(1, sizeof(*l));
		l->base.next = (struct base *)bases;
		bases = &l->base;
	}
	numbers = calloc(1000, sizeof(*numbers));
	/* An address behind an array is not in it. */
	dangling_end = (int *)calloc(30, sizeof(int)) + 15;
	deep.in.leaf = grow(1);
	for (int i = 0; i < 3; i++)
		deep.of[i].leaf = grow(1);
	keep = (void *volatile *)&of_function;
	printf("session %d\n", SESSIONS + LINKS + 1);
	printf("session[] %d\n", 1);
	printf("buffer %d\n", 2 * SESSIONS + 2 + 1 + 64 + 20);
	printf("buffer*[] %d\n", 1);
	printf("route %d\n", 4);
	printf("base[] or a larger structure %d\n", 5);
	printf("double[] %d\n", 1);
	pthread_create(&t, NULL, worker, NULL);
	for (;;)
		pause();
}
