// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocates at places that are hard to unwind from, and writes the true stack of each allocation:
// the return addresses that _Unwind_Backtrace finds by the full DWARF information.  Output: lines
// "ADDRESS PC PC PC ..." (address of the block; innermost first, from the allocating function on).
#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>
#include <unwind.h>

namespace
{

struct Trace {
	uintptr_t pc[256];
	int n;
};

FILE *out;
volatile sig_atomic_t in_write;
volatile long handled;

_Unwind_Reason_Code step(_Unwind_Context *c, void *arg)
{
	Trace *t = static_cast<Trace *>(arg);

	if (t->n < 256)
		t->pc[t->n++] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

// Allocates the block and unwinds in one function that is not inlined, so that its callers' frames
// are the same for both.  The block is never freed, so that the report has it.
__attribute__((noinline)) void record(size_t size)
{
	char line[256 * 20];
	Trace t{};
	int n = 0;
	void *p = malloc(size);

	_Unwind_Backtrace(step, &t);
	n += snprintf(line, sizeof(line), "%lx", (unsigned long)p);
	// 0 is record() itself: its own return address differs from malloc's.
	for (int i = 1; i < t.n; i++)
		n += snprintf(line + n, sizeof(line) - n, " %lx", (unsigned long)t.pc[i]);
	line[n++] = '\n';
	if (write(fileno(out), line, n) != n)
		_exit(3);
}

__attribute__((noinline)) int recurse(int depth, size_t size)
{
	if (depth == 0) {
		record(size);
		return 1;
	}
	int r = recurse(depth - 1, size);
	asm volatile("" : "+r"(r));
	return r + 1;
}

struct Shape {
	virtual ~Shape() = default;
	virtual int visit(int n) = 0;
};
struct Circle : Shape {
	__attribute__((noinline)) int visit(int n) override
	{
		record(32 + n);
		return n + 1;
	}
};
struct Square : Shape {
	Shape *inner;
	explicit Square(Shape *s) : inner(s) {}
	__attribute__((noinline)) int visit(int n) override
	{
		return inner->visit(n + 1) * 3;
	}
};

__attribute__((noinline)) int with_alloca(int n)
{
	char *p = static_cast<char *>(alloca(static_cast<size_t>(n * 48 + 16)));

	memset(p, n, static_cast<size_t>(n * 48 + 16));
	asm volatile("" : : "r"(p) : "memory");
	record(static_cast<size_t>(n) + 100);
	return p[n];
}

int compare(const void *a, const void *b)
{
	static int calls;

	if (calls++ % 7 == 0)
		record(701);
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

__attribute__((noinline)) void sort_some(unsigned int seed)
{
	int v[40];

	for (int &x : v)
		x = static_cast<int>(seed = seed * 1664525 + 1013904223) >> 4;
	qsort(v, 40, sizeof(v[0]), compare);
	asm volatile("" : : "r"(v) : "memory");
}

__attribute__((noinline)) void thrower(int n)
{
	if (n % 3 == 0)
		throw n;
	record(55);
}

__attribute__((noinline)) void catches(int n)
{
	try {
		thrower(n);
	} catch (int) {
		record(702);
	}
}

void on_alarm(int)
{
	if (handled < 300) {
		record(703);
		handled = handled + 1;
	}
}

__attribute__((noinline)) void spin(long until)
{
	volatile long sum = 0;

	while (handled < until)
		for (int i = 0; i < 1000; i++)
			sum = sum + i * i;
}

void round_of(int n)
{
	Circle c;
	Square s(&c), s2(&s);
	Shape *shape = n % 2 ? static_cast<Shape *>(&s2) : &s;

	recurse(n % 40, 20);
	shape->visit(n);
	with_alloca(n % 30);
	sort_some(static_cast<unsigned int>(n));
	catches(n);
	std::function<void(int)> f = [n](int k) { record(static_cast<size_t>(n + k)); };
	f(n);
}

int rounds = 40; // of each thread; or the second argument

void *thread(void *)
{
	for (int i = 0; i < rounds; i++)
		round_of(i);
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	pthread_t th[3];

	if (argc > 2)
		rounds = atoi(argv[2]);
	out = fopen(argc > 1 ? argv[1] : "/dev/null", "w");
	if (!out)
		return 2;
	for (int i = 0; i < 60; i++)
		round_of(i);
	for (pthread_t &t : th)
		pthread_create(&t, nullptr, thread, nullptr);
	for (pthread_t &t : th)
		pthread_join(t, nullptr);
	signal(SIGALRM, on_alarm);
	itimerval it{{0, 2000}, {0, 2000}};
	setitimer(ITIMER_REAL, &it, nullptr);
	spin(100);
	it = {};
	setitimer(ITIMER_REAL, &it, nullptr);
	_exit(0);
}
