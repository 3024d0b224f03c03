// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls aligned operator new with sizes that are not multiples of the alignment, also with sizes so
// large that it fails.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <unistd.h>

static void *use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

static __attribute__((noinline)) void keep_one()
{
	for (int i = 0; i < 100; i++)
		use(operator new(100, std::align_val_t(64)));
}

static __attribute__((noinline)) void keep_array()
{
	for (int i = 0; i < 100; i++)
		use(operator new[](70, std::align_val_t(256)));
}

static __attribute__((noinline)) void keep_nothrow()
{
	for (int i = 0; i < 100; i++)
		use(operator new(33, std::align_val_t(32), std::nothrow));
}

static __attribute__((noinline)) void free_all()
{
	for (int i = 0; i < 100; i++)
		operator delete(use(operator new(17, std::align_val_t(128))),
				std::align_val_t(128));
}

// Both calls fail: the new handler throws std::bad_alloc.
static int fail()
{
	volatile size_t huge = 1ul << 62;
	int failed = 0;

	std::set_new_handler([] { throw std::bad_alloc(); });
	for (int i = 0; i < 10; i++) {
		try {
			use(operator new(huge, std::align_val_t(64)));
		} catch (const std::bad_alloc &) {
			failed++;
		}
		failed += !use(operator new(huge, std::align_val_t(64), std::nothrow));
	}
	return failed;
}

int main()
{
	keep_one();
	keep_array();
	keep_nothrow();
	free_all();
	printf("%d failed\n", fail());
	fflush(stdout);
	_exit(0);
}
