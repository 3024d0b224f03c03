// SPDX-License-Identifier: MIT OR Apache-2.0
// Leaks and keeps objects of classes: their names have to be told, also in a stripped program.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
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

/* A compiler may leave out an allocation that nobody uses. */
static void use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static __attribute__((noinline)) void leak()
{
	app::Node *node = nullptr;

	for (int i = 0; i < 20; i++)
		node = new app::Node(node);
	for (int i = 0; i < 7; i++)
		use(new app::Holder<long[30]>());
	use(strcpy(static_cast<char *>(malloc(100)), "a secret that nobody should see"));
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
