// SPDX-License-Identifier: MIT OR Apache-2.0
// Waits for a character or the end of stdin.  Then each of its functions touches a known number of
// pages.  Prints lines of JSON: the function, address and bytes of its pages, and the number of
// faults that they take.  Writes lines "ADDRESS PC PC PC ..." to the file FILE (the argument): a
// page that touch_and_tell() touched, and the return addresses that libgcc's unwinder found there,
// innermost first, beginning with the one in that function's caller.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

namespace
{

constexpr size_t huge = 2u << 20;
const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
FILE *out;

struct Trace {
	uintptr_t pc[128];
	int n;
};

_Unwind_Reason_Code step(_Unwind_Context *c, void *arg)
{
	Trace *t = static_cast<Trace *>(arg);

	if (t->n < 128)
		t->pc[t->n++] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

void tell(const char *function, const void *p, size_t bytes, size_t faults)
{
	printf("{\"function\": \"%s\", \"address\": %lu, \"bytes\": %zu, \"faults\": %zu}\n",
	       function, reinterpret_cast<unsigned long>(p), bytes, faults);
}

// Maps untouched pages for @function, none of them huge.
char *fresh(const char *function, size_t pages, size_t faults)
{
	void *p =
	    mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(3);
	(void)madvise(p, pages * page, MADV_NOHUGEPAGE); // fails on kernels without huge pages
	tell(function, p, pages * page, faults);
	return static_cast<char *>(p);
}

} // namespace

extern "C" {

__attribute__((noinline)) void touch_one_by_one(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i * page + 8] = 1;
}

__attribute__((noinline)) void touch_by_memset(char *p, size_t n)
{
	memset(p, 1, n * page);
	asm volatile("" : : "r"(p) : "memory");
}

// The kernel touches them.
__attribute__((noinline)) void touch_by_read(char *p, size_t n)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < n; i++)
		if (read(fd, p + i * page, page) != static_cast<ssize_t>(page))
			_exit(3);
	close(fd);
}

// Touches each page twice, and gives it back to the kernel in between.
__attribute__((noinline)) void touch_again(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		p[i * page] = 1;
		madvise(const_cast<char *>(p) + i * page, page, MADV_DONTNEED);
		p[i * page] = 2;
	}
}

__attribute__((noinline)) void touch_huge(volatile char *p)
{
	p[0] = 1;
	asm volatile("" : : : "memory");
}

__attribute__((noinline)) void touch_and_tell(volatile char *p)
{
	char line[128 * 20];
	Trace t{};
	int n;

	_Unwind_Backtrace(step, &t);
	p[0] = 1;
	n = snprintf(line, sizeof(line), "%lx", reinterpret_cast<unsigned long>(p));
	for (int i = 1; i < t.n; i++)
		n += snprintf(line + n, sizeof(line) - static_cast<size_t>(n), " %lx",
			      static_cast<unsigned long>(t.pc[i]));
	fprintf(out, "%s\n", line);
}

__attribute__((noinline)) int touch_deep(volatile char *p, int depth)
{
	if (depth == 0) {
		touch_and_tell(p);
		return 1;
	}
	int r = touch_deep(p, depth - 1);
	asm volatile("" : "+r"(r));
	return r + 1;
}
}

namespace
{

// A page touched in a callback: the comparison function of qsort.
char *sorted;
int compare(const void *a, const void *b)
{
	static int calls;

	if (calls % 8 == 0 && calls < 8 * 60)
		touch_and_tell(sorted + static_cast<size_t>(calls / 8) * page);
	calls++;
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void *thread(void *)
{
	touch_one_by_one(fresh("touch_one_by_one", 100, 100), 100);
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	char *deep, *p;
	bool is_huge;
	int v[256];
	pthread_t t;

	out = fopen(argc > 1 ? argv[1] : "/dev/null", "w");
	if (!out)
		return 2;
	printf("ready\n");
	fflush(stdout);
	getchar();
	deep = fresh("touch_and_tell", 60, 60);
	sorted = fresh("touch_and_tell", 60, 60);
	p = static_cast<char *>(
	    mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	p = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(p) + huge - 1) & ~(huge - 1));
	is_huge = page == 4096 && madvise(p, huge, MADV_HUGEPAGE) == 0;
	touch_one_by_one(fresh("touch_one_by_one", 1000, 1000), 1000);
	touch_by_memset(fresh("touch_by_memset", 500, 500), 500);
	touch_by_read(fresh("touch_by_read", 200, 200), 200);
	touch_again(fresh("touch_again", 50, 100), 50);
	if (is_huge) {
		tell("touch_huge", p, huge, 1);
		touch_huge(p);
	}
	for (int i = 0; i < 60; i++)
		touch_deep(deep + static_cast<size_t>(i) * page, i);
	for (int i = 0; i < 256; i++)
		v[i] = i * 7919 % 257;
	qsort(v, 256, sizeof(v[0]), compare);
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, nullptr, thread, nullptr);
		pthread_join(t, nullptr);
	}
	fclose(out);
	return 0;
}
