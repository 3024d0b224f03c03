// SPDX-License-Identifier: MIT OR Apache-2.0
// Throws and catches exceptions in a loop, through frames that allocate; checks what it catches.
#include <csignal>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

static volatile sig_atomic_t stop;

__attribute__((noinline)) static int work(int n)
{
	std::vector<std::string> v;

	for (int i = 0; i < n % 9; i++)
		v.push_back(std::string(static_cast<size_t>(20 + i), 'x'));
	if (n % 2)
		throw std::runtime_error("number " + std::to_string(n));
	return static_cast<int>(v.size());
}

int main()
{
	long thrown = 0, returned = 0, refused = 0;

	signal(SIGTERM, [](int) { stop = 1; });
	alarm(600);
	for (int n = 0; !stop; n = (n + 1) % 1000000) {
		try {
			if (work(n) != n % 9)
				return 1;
			returned++;
		} catch (const std::runtime_error &e) {
			if (e.what() != "number " + std::to_string(n))
				return 1;
			thrown++;
		}
		if (n % 1000 == 0) {
			try {
				char *p = new char[PTRDIFF_MAX - 64];
				delete[] p;
				return 1;
			} catch (const std::bad_alloc &) {
				refused++;
			}
		}
	}
	printf("ok %ld %ld %ld\n", thrown, returned, refused);
	return thrown && returned && refused ? 0 : 1;
}
