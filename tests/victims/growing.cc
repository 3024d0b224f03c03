/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Its data grow and shrink as lines on standard input say, "map 1000".  After each line it prints what
 * each variable retains: name, usable bytes, blocks; then "ready".
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#define CACHE 10000

struct sum {
	size_t bytes, blocks;
};

/* Its last bytes must not have an address of the allocator either. */
static void *block(sum *s, size_t size)
{
	void *p = malloc(size);

	memset(p, 0, malloc_usable_size(p));
	s->bytes += malloc_usable_size(p);
	s->blocks++;
	return p;
}

static void release(sum *s, void *p)
{
	if (!p)
		return;
	s->bytes -= malloc_usable_size(p);
	s->blocks--;
	free(p);
}

struct entry {
	entry *next;
	char *name;
	long key, value[4];
};
struct table {
	entry **slot;
	size_t slots, n;
};
struct message {
	message *next;
	long number[7];
};
struct session {
	virtual ~session()
	{
	}
	char *name;
	long number[6];
};

table *g_map;	      /* a hash table, which doubles when it is full */
void *g_cache[CACHE]; /* buffers that come and go */
message *g_log;	      /* a list */
message *g_constant;
session **g_sessions; /* an array, which grows with each object */
static size_t sessions;
thread_local char *t_buffer;

static sum map, cache, log_, constant, objects, buffer, leaked;

static char *name_of(sum *s, long n)
{
	char *name = static_cast<char *>(block(s, 40));

	snprintf(name, 40, "the name of entry %ld", n);
	return name;
}

static void double_slots()
{
	const size_t slots = g_map->slots * 2;
	entry **slot = static_cast<entry **>(block(&map, slots * sizeof(*slot)));

	for (size_t i = 0; i < g_map->slots; i++) {
		entry *next;

		for (entry *e = g_map->slot[i]; e; e = next) {
			next = e->next;
			e->next = slot[static_cast<size_t>(e->key) % slots];
			slot[static_cast<size_t>(e->key) % slots] = e;
		}
	}
	memset(g_map->slot, 0, g_map->slots * sizeof(*slot));
	release(&map, g_map->slot);
	g_map->slot = slot;
	g_map->slots = slots;
}

static void grow_map(long n)
{
	if (!g_map) {
		g_map = static_cast<table *>(block(&map, sizeof(*g_map)));
		g_map->slots = 16;
		g_map->slot = static_cast<entry **>(block(&map, 16 * sizeof(entry *)));
	}
	while (n--) {
		entry *e = static_cast<entry *>(block(&map, sizeof(*e))), **at;

		if (g_map->n == g_map->slots)
			double_slots();
		e->key = static_cast<long>(g_map->n++);
		e->name = name_of(&map, e->key);
		at = &g_map->slot[static_cast<size_t>(e->key) % g_map->slots];
		e->next = *at;
		*at = e;
	}
}

/* Makes the cache have @n buffers. */
static void set_cache(long n)
{
	for (long i = 0; i < CACHE; i++) {
		if (i < n && !g_cache[i]) {
			g_cache[i] = block(&cache, 500);
		} else if (i >= n) {
			release(&cache, g_cache[i]);
			g_cache[i] = nullptr;
		}
	}
}

static void grow_list(message **list, sum *s, long n)
{
	while (n--) {
		message *m = static_cast<message *>(block(s, sizeof(*m)));

		m->next = *list;
		*list = m;
	}
}

static void grow_objects(long n)
{
	while (n--) {
		session **more =
		    static_cast<session **>(block(&objects, (sessions + 1) * sizeof(session *)));
		session *it = new session();

		objects.bytes += malloc_usable_size(it);
		objects.blocks++;
		it->name = name_of(&objects, n);
		for (size_t i = 0; i < sessions; i++)
			more[i] = g_sessions[i];
		release(&objects, g_sessions);
		g_sessions = more;
		g_sessions[sessions++] = it;
	}
}

static void leak(long n)
{
	for (long i = 0; i < n; i++)
		memset(block(&leaked, 3000), 0, 8);
}

/* ------------------------------------------------------------- threads -- */

static struct {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	size_t wanted, done;
	bool end;
	int number;
} worker;
static pthread_t thread;

/* A thread whose buffer has the size that is wanted. */
static void *work(void *)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", worker.number);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&worker.lock);
	while (!worker.end) {
		if (worker.wanted != worker.done) {
			release(&buffer, t_buffer);
			t_buffer = static_cast<char *>(block(&buffer, worker.wanted));
			worker.done = worker.wanted;
			pthread_cond_broadcast(&worker.changed);
		}
		pthread_cond_wait(&worker.changed, &worker.lock);
	}
	release(&buffer, t_buffer);
	t_buffer = nullptr;
	worker.done = 0;
	pthread_mutex_unlock(&worker.lock);
	return nullptr;
}

static void set_buffer(long n)
{
	pthread_mutex_lock(&worker.lock);
	worker.wanted = static_cast<size_t>(n);
	pthread_cond_broadcast(&worker.changed);
	while (worker.done != worker.wanted)
		pthread_cond_wait(&worker.changed, &worker.lock);
	pthread_mutex_unlock(&worker.lock);
}

/* Begins another thread, with the next number in its name. */
static void replace_thread()
{
	if (worker.number) {
		pthread_mutex_lock(&worker.lock);
		worker.end = true;
		pthread_cond_broadcast(&worker.changed);
		pthread_mutex_unlock(&worker.lock);
		pthread_join(thread, nullptr);
		worker.end = false;
	}
	worker.number++;
	pthread_create(&thread, nullptr, work, nullptr);
}

/* Allocates and frees all the time. */
static void *be_busy(void *)
{
	unsigned int seed = 1;

	for (;;) {
		void *p[64];

		for (int i = 0; i < 64; i++)
			p[i] = malloc(static_cast<size_t>(rand_r(&seed)) % 2000);
		for (int i = 0; i < 64; i++)
			free(p[i]);
		usleep(100);
	}
	return nullptr;
}

static void start_busy(long n)
{
	pthread_t t;

	while (n--)
		pthread_create(&t, nullptr, be_busy, nullptr);
}

/* Overwrites what the functions above left on the stack. */
__attribute__((noinline)) static void clear_stack()
{
	volatile char bytes[16384];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

static void print(const char *name, const sum &s)
{
	printf("%s %zu %zu\n", name, s.bytes, s.blocks);
}

int main(int, char **argv)
{
	char line[100], command[40];
	long n;

	grow_list(&g_constant, &constant, 100);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%39s %ld", command, &n) != 2)
			return 1;
		if (!strcmp(command, "map"))
			grow_map(n);
		else if (!strcmp(command, "cache"))
			set_cache(n);
		else if (!strcmp(command, "log"))
			grow_list(&g_log, &log_, n);
		else if (!strcmp(command, "objects"))
			grow_objects(n);
		else if (!strcmp(command, "buffer"))
			set_buffer(n);
		else if (!strcmp(command, "thread"))
			replace_thread();
		else if (!strcmp(command, "busy"))
			start_busy(n);
		else if (!strcmp(command, "leak"))
			leak(n);
		else if (!strcmp(command, "exec"))
			execl("/proc/self/exe", argv[0], nullptr);
		else
			return 1;
		clear_stack();
		print("g_map", map);
		print("g_cache", cache);
		print("g_log", log_);
		print("g_constant", constant);
		print("g_sessions", objects);
		print("t_buffer", buffer);
		print("leaked", leaked);
		printf("ready\n");
		fflush(stdout);
	}
	return 0;
}
