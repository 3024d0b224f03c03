/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Has a global variable of each container that memprof knows.  Prints for each what the program itself
 * counts: type, elements, blocks and usable bytes that only implement it, unused bytes, buckets; then of
 * some types how many containers and elements there are in all; then "ready".  With an argument it has a
 * thread that changes another container all the time. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <pthread.h>
#include <set>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

/* Elements in a chunk of std::deque<int>. */
#ifdef _LIBCPP_VERSION
#define DEQUE_CHUNK 1024
#else
#define DEQUE_CHUNK 128
#endif

struct sum {
	size_t blocks, bytes;
};
/* Compilers may assume that operator new does not change them. */
static volatile size_t live_blocks, live_bytes;
static bool counting = true;

__attribute__((noinline)) void *operator new(size_t size)
{
	void *p = calloc(1, size); /* without old pointers */

	if (counting) {
		live_blocks = live_blocks + 1;
		live_bytes = live_bytes + malloc_usable_size(p);
	}
	return p;
}
__attribute__((noinline)) void operator delete(void *p) noexcept
{
	if (p && counting) {
		live_blocks = live_blocks - 1;
		live_bytes = live_bytes - malloc_usable_size(p);
	}
	free(p);
}
__attribute__((noinline)) void operator delete(void *p, size_t) noexcept
{
	operator delete(p);
}

namespace app
{
struct session {
	int id;
	double load[3];
	char tag[8];
};
struct shape {
	virtual ~shape()
	{
	}
	int sides = 3;
};
struct square : shape {
	std::string color = "a colour with a name that is longer than a short one";
};
struct tree {
	std::vector<tree> children;
	std::string label;
};
struct server {
	struct entry {
		std::string key;
		std::unique_ptr<session> last;
	};
	std::map<int, entry> entries;
	std::deque<std::shared_ptr<session>> queue;
};
} // namespace app
using app::session;

std::vector<session> g_vector;
std::vector<bool> g_bits;
std::string g_string, g_short;
std::deque<int> g_deque;
std::list<session> g_list;
std::map<int, session> g_map;
std::multimap<int, char> g_multimap;
std::set<long> g_set;
std::multiset<std::pair<char, int>> g_multiset;
std::unordered_map<int, session> g_hash;
std::unordered_multimap<long, char> g_multihash;
std::unordered_set<std::string> g_words;
std::unordered_multiset<int> g_multiwords;
std::shared_ptr<session> g_shared, g_shared_again;
std::shared_ptr<app::shape> g_shape;
std::shared_ptr<session> g_adopted;
std::unique_ptr<session[]> g_array;
std::vector<std::vector<std::string>> g_nested;
std::map<std::string, std::list<int>> g_lists;
app::server g_server;
app::tree g_tree;
std::vector<std::unique_ptr<app::shape>> g_shapes;
static std::vector<int> *volatile g_pointer;
static struct {
	std::vector<short> empty;
	std::vector<short> reserved;
} g_pair;
std::map<int, int> g_busy;
thread_local std::vector<long> t_vector;

struct before {
	sum at = {live_blocks, live_bytes};
};

/* The blocks and bytes are those that were allocated since @b, without @less. */
static void print(const char *name, const before &b, size_t elements, size_t unused, size_t buckets)
{
	printf("variable %s %zu %zu %zu %zu %zu\n", name, elements, live_blocks - b.at.blocks,
	       live_bytes - b.at.bytes, unused, buckets);
}

/* What an empty one has: g_deque has it since before main(). */
static sum of_empty_deque()
{
	before b;
	std::deque<int> d;

	return {live_blocks - b.at.blocks, live_bytes - b.at.bytes};
}

template <typename V> static size_t unused(const V &v)
{
	return (v.capacity() - v.size()) * sizeof(v[0]);
}

static void arrays()
{
	before b;

	for (int i = 0; i < 1000; i++)
		g_vector.push_back({i, {}, {}});
	print("g_vector", b, g_vector.size(), unused(g_vector), 0);
	b = {};
	for (int i = 0; i < 100003; i++)
		g_bits.push_back(i & 1);
	print("g_bits", b, g_bits.size(), g_bits.capacity() / 8 - (g_bits.size() + 7) / 8, 0);
	b = {};
	g_string.assign(5000, 'x');
	g_string.reserve(9000);
	print("g_string", b, g_string.size(), g_string.capacity() - g_string.size(), 0);
	g_short = "short";
	const sum empty = of_empty_deque();
	b = {};
	for (int i = 0; i < 10000; i++)
		g_deque.push_back(i);
	for (int i = 0; i < 50; i++)
		g_deque.pop_front();
	b.at.blocks -= empty.blocks;
	b.at.bytes -= empty.bytes;
	/* One of the blocks is the map. */
	print("g_deque", b, g_deque.size(),
	      ((live_blocks - b.at.blocks - 1) * DEQUE_CHUNK - g_deque.size()) * sizeof(int), 0);
	b = {};
	g_pair.reserved.reserve(1000);
	print("g_pair", b, 0, 2000, 0);
	b = {};
	t_vector.assign(400, 7);
	print("t_vector", b, 400, 0, 0);
	printf("thread-local t_vector %p\n", (void *)&t_vector);
	g_pointer = new std::vector<int>(3000);
}

static void nodes()
{
	before b;

	for (int i = 0; i < 700; i++)
		g_list.push_back({i, {}, {}});
	print("g_list", b, g_list.size(), 0, 0);
	b = {};
	for (int i = 0; i < 3000; i++)
		g_map[i * 7919 % 10007] = {};
	print("g_map", b, g_map.size(), 0, 0);
	b = {};
	for (int i = 0; i < 500; i++)
		g_multimap.emplace(i / 2, 'x');
	print("g_multimap", b, g_multimap.size(), 0, 0);
	b = {};
	for (long i = 0; i < 1234; i++)
		g_set.insert(i);
	print("g_set", b, g_set.size(), 0, 0);
	b = {};
	for (int i = 0; i < 777; i++)
		g_multiset.emplace('x', i / 3);
	print("g_multiset", b, g_multiset.size(), 0, 0);
	b = {};
	for (int i = 0; i < 2000; i++)
		g_hash[i] = {};
	print("g_hash", b, g_hash.size(), 0, g_hash.bucket_count());
	b = {};
	for (int i = 0; i < 900; i++)
		g_multihash.emplace(i / 3, 'x');
	print("g_multihash", b, g_multihash.size(), 0, g_multihash.bucket_count());
	b = {};
	for (int i = 0; i < 1500; i++)
		g_words.insert("w" + std::to_string(i)); /* all are short */
	print("g_words", b, g_words.size(), 0, g_words.bucket_count());
	b = {};
	for (int i = 0; i < 600; i++)
		g_multiwords.insert(i / 2);
	print("g_multiwords", b, g_multiwords.size(), 0, g_multiwords.bucket_count());
	for (int i = 0; i < 300; i++)
		g_busy[i] = i;
}

static void pointers()
{
	g_shared = std::make_shared<session>();
	g_shared_again = g_shared;
	g_adopted.reset(new session());
	g_shape = std::make_shared<app::square>();
	g_array.reset(new session[50]());
	for (int i = 0; i < 20; i++)
		g_shapes.push_back(i & 1 ? std::make_unique<app::square>()
					 : std::make_unique<app::shape>());
}

static void plant(app::tree &t, int levels)
{
	t.label = "a label that is too long for the object, so that it is in a block";
	for (int i = 0; levels && i < 3; i++) {
		t.children.emplace_back();
		plant(t.children.back(), levels - 1);
	}
}

static void nested()
{
	for (int i = 0; i < 40; i++) {
		g_nested.emplace_back();
		for (int k = 0; k < 25; k++)
			g_nested.back().push_back(std::string(k & 1 ? 100 : 3, 'n'));
	}
	for (int i = 0; i < 60; i++)
		g_lists["a key that is longer than a short one " + std::to_string(i)] = {1, 2, 3,
											 i};
	for (int i = 0; i < 200; i++) {
		g_server.entries[i].key.assign(50, 'k');
		g_server.entries[i].last = std::make_unique<session>();
		g_server.queue.push_back(std::make_shared<session>());
	}
	plant(g_tree, 4);
}

/* Sums of all containers of one type: how many, elements. */
static void print_sums()
{
	size_t long_strings = 0, chars = 0;

	for (const auto &v : g_nested) {
		for (const std::string &s : v)
			long_strings += s.size() > 22, chars += s.size() > 22 ? s.size() : 0;
	}
	printf("sum text_in_g_nested %zu %zu\n", long_strings, chars);
	printf("sum node_of_lists %zu %zu\n", g_lists.size(), g_lists.size() * 4);
	printf("sum sessions_in_entries %zu %zu\n", g_server.entries.size(),
	       g_server.entries.size());
	/* 1 + 3 + 9 + 27 + 81 */
	printf("sum trees %d %d\n", 121, 120);
}

/* Prints "ready", and never returns: what it has on its stack lives on. */
__attribute__((noinline)) static void hold_on_stack()
{
	before b;
	std::map<short, session> held;
	std::vector<std::string> names(30, std::string(60, 's'));

	for (short i = 0; i < 250; i++)
		held[i] = {};
	b.at.blocks += 31;
	printf("stack %zu %zu\n", held.size(), live_blocks - b.at.blocks);
	counting = false;
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		pause();
		/* Both are in memory. */
		asm volatile("" : : "r"(&held), "r"(&names) : "memory");
	}
}

static void *change(void *)
{
	for (int i = 0;; i++) {
		if (i & 1)
			g_busy.erase(i % 300);
		else
			g_busy[i % 300] = i;
		g_busy[i * 7 % 300] = i;
	}
}

int main(int argc, char **)
{
	pthread_t t;

	arrays();
	nodes();
	pointers();
	nested();
	print_sums();
	if (argc > 1)
		pthread_create(&t, nullptr, change, nullptr);
	hold_on_stack();
}
