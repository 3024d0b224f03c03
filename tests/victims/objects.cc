// SPDX-License-Identifier: MIT OR Apache-2.0
// Leaks and keeps objects of classes.  memprof must report the classes' names, also if the program
// is stripped.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

class Widget
{
      public:
	virtual ~Widget() = default;
	long value[4] = {1, 2, 3, 4};
};

namespace app
{
class Node : public Widget
{
      public:
	explicit Node(Node *n) : next(n), name(new char[40])
	{
		memset(name, 0, 40);
		strcpy(name, "the name of a node");
	}
	Node *next;
	char *name;
};

template <class T> struct Holder {
	virtual ~Holder() = default;
	T item{};
};
} // namespace app

static std::map<int, std::string> kept;
static std::vector<std::shared_ptr<Widget>> shared;
static std::unique_ptr<app::Node> chain;

/* Keeps the compiler from removing an allocation. */
static void use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* Return: an address in a mapping; its bytes are letters. */
static void *letters()
{
	uintptr_t at = sizeof(void *) == 4 ? 0x61626364 : (uintptr_t)0x6162636465;
	void *page = reinterpret_cast<void *>(at & ~(uintptr_t)0xffff);

	if (mmap(page, 0x10000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		 0) != page)
		abort();
	return reinterpret_cast<void *>(at);
}

static __attribute__((noinline)) void leak()
{
	app::Node *node = nullptr;

	for (int i = 0; i < 20; i++)
		node = new app::Node(node);
	for (int i = 0; i < 7; i++)
		use(new app::Holder<long[30]>());
	use(strcpy(static_cast<char *>(malloc(100)), "a secret that nobody should see"));
	use(memcpy(calloc(1, 48), std::array<void *, 1>{letters()}.data(), sizeof(void *)));
}

static __attribute__((noinline)) void clear_stack()
{
	volatile char room[8192];

	for (char volatile &c : room)
		c = 0;
}

int main()
{
	for (int i = 0; i < 1000; i++)
		kept[i] = std::string(20 + i % 50, 'x');
	for (int i = 0; i < 100; i++)
		shared.push_back(std::make_shared<app::Node>(nullptr));
	chain.reset(new app::Node(new app::Node(nullptr)));
	leak();
	clear_stack();
	printf("chain %p\nready\n", static_cast<void *>(chain->next));
	fflush(stdout);
	for (;;)
		pause();
}
