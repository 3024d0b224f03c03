/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keeps blocks by variables of each kind, by a thread's storage and by a thread's stack.  Prints for
 * each of them what it retains: name, usable bytes, blocks; then "ready". */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#define NODES	 1000
#define SESSIONS 500

struct sum {
	size_t bytes, blocks;
};

static void *block(sum *s, size_t size)
{
	void *p = calloc(1, size);

	s->bytes += malloc_usable_size(p);
	s->blocks++;
	return p;
}

static void print(const char *name, const sum &s)
{
	printf("%s %zu %zu\n", name, s.bytes, s.blocks);
}

struct node {
	node *next;
	long value[4];
};
struct leaf {
	leaf *left, *right;
	long value;
};
struct session {
	virtual ~session() {}
	char *name;
	long number[6];
};

node *g_list;
static leaf *volatile g_tree;
session **g_sessions;
void *g_cache_a, *g_cache_b;
static void *volatile g_table[64];
char *g_inner;
char *g_half[2];

namespace app {
session *current;
}
thread_local void *t_buffer;

static leaf *grow(sum *s, int levels)
{
	leaf *l;

	if (!levels)
		return nullptr;
	l = static_cast<leaf *>(block(s, sizeof(*l)));
	l->left = grow(s, levels - 1);
	l->right = grow(s, levels - 1);
	return l;
}

static void make_list()
{
	sum s = {};

	for (int i = 0; i < NODES; i++) {
		node *n = static_cast<node *>(block(&s, sizeof(node)));

		n->next = g_list;
		g_list = n;
	}
	print("g_list", s);
}

static session *make_session(sum *s)
{
	session *it = new session();

	s->bytes += malloc_usable_size(it);
	s->blocks++;
	it->name = static_cast<char *>(block(s, 100));
	strcpy(it->name, "a session's name, which is text");
	return it;
}

static void make_sessions()
{
	sum s = {};

	g_sessions = static_cast<session **>(block(&s, SESSIONS * sizeof(session *)));
	for (int i = 0; i < SESSIONS; i++)
		g_sessions[i] = make_session(&s);
	print("g_sessions", s);
	s = {};
	app::current = make_session(&s);
	print("app::current", s);
}

static void make_shared()
{
	void **both;
	sum s = {};

	both = static_cast<void **>(block(&s, 100 * sizeof(void *)));
	for (int i = 0; i < 100; i++)
		both[i] = block(&s, 1000);
	g_cache_a = g_cache_b = both;
	print("shared", s);
}

static void make_table()
{
	sum s = {};

	for (int i = 0; i < 64; i++)
		g_table[i] = block(&s, 200);
	print("g_table", s);
}

/* g_inner has an inner address; the block that it leads to has exact ones.  g_half has one of each.
 */
static void make_inner()
{
	sum s = {}, exact = {};
	char *first;

	first = static_cast<char *>(block(&s, 64));
	*reinterpret_cast<void **>(first) = block(&s, 5000);
	g_inner = first + 32;
	print("g_inner", s);
	s = {};
	g_half[0] = static_cast<char *>(block(&s, 3000));
	exact = s;
	g_half[1] = static_cast<char *>(block(&s, 7000)) + 500;
	print("g_half", s);
	print("g_half:exact", exact);
}

__attribute__((noinline)) void serve()
{
	__attribute__((used)) static void *kept[2];
	sum s = {};

	kept[0] = block(&s, 12345);
	kept[1] = block(&s, 54321);
	print("serve()::kept", s);
}

/* Its blocks have no address but in this function's frame. */
__attribute__((noinline)) static void hold_on_stack()
{
	void *volatile held[3];
	sum s = {};

	held[0] = block(&s, 100000);
	held[1] = block(&s, 200000);
	held[2] = held[1];
	print("hold_on_stack", s);
	s = {};
	t_buffer = block(&s, 77777);
	print("t_buffer", s);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		pause();
		held[2] = held[0];
	}
}

static pthread_barrier_t started;

static void *worker(void *)
{
	pthread_setname_np(pthread_self(), "worker-3");
	/* pthread_create() blocks all signals of its caller until it returns. */
	pthread_barrier_wait(&started);
	hold_on_stack();
	return nullptr;
}

static void leak()
{
	sum s = {};

	for (int i = 0; i < 5; i++)
		block(&s, 4000);
	print("leaked", s);
}

/* Overwrites what the functions above left on the stack. */
__attribute__((noinline)) static void clear_stack()
{
	volatile char bytes[16384];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

int main()
{
	pthread_t t;
	sum s = {};

	leak();
	make_list();
	g_tree = grow(&s, 10);
	print("g_tree", s);
	make_sessions();
	make_shared();
	make_table();
	make_inner();
	serve();
	clear_stack();
	pthread_barrier_init(&started, nullptr, 2);
	pthread_create(&t, nullptr, worker, nullptr);
	pthread_barrier_wait(&started);
	for (;;)
		pause();
}
