// SPDX-License-Identifier: MIT OR Apache-2.0
// Keeps objects in variables, ten of each before "ready", and a thousand more for each line that it reads.
#include <cstdio>
#include <malloc.h>
#include <map>
#include <memory>

struct session {
	int id;
	char text[60];
};
struct ticket {
	long number[5];
};

static std::map<int, std::shared_ptr<session>> g_sessions;
// No debug information says what is in these.
static void *g_tickets[100000];
static void *g_buffers[100000];
static int made;

static void __attribute__((noinline)) add_session(int i)
{
	g_sessions[i] = std::make_shared<session>();
}

static void __attribute__((noinline)) add_ticket(int i)
{
	g_tickets[i] = std::make_unique<ticket>().release();
}

static void __attribute__((noinline)) add_buffer(int i)
{
	g_buffers[i] = malloc(200);
}

static void add(int n)
{
	for (int end = made + n; made < end; made++) {
		add_session(made);
		add_ticket(made);
		add_buffer(made);
	}
}

int main()
{
	char line[16];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	add(10);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		add(1000);
		printf("added %zu %zu\n", malloc_usable_size(g_buffers[0]),
		       malloc_usable_size(g_tickets[0]));
	}
	return 0;
}
