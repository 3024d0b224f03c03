// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocates at known lines, which tests find by their comments.  Everything stays allocated, so the
// bytes of each line are known: see main().
#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

namespace shop
{

struct Basket {
	std::vector<char> goods;
	__attribute__((noinline)) void fill(size_t n);
};

void Basket::fill(size_t n)
{
	goods.reserve(n); // vector
}

} // namespace shop

static void *volatile kept;

// Two sites in one function.
__attribute__((noinline)) static void two()
{
	kept = malloc(1000); // first
	kept = malloc(2000); // second
}

__attribute__((noinline)) static void deep(int n)
{
	if (n)
		deep(n - 1);
	else
		kept = malloc(300); // recursion
	asm volatile("");
}

__attribute__((noinline)) static void each(int n)
{
	kept = calloc(1, (size_t)n); // callback
}

__attribute__((noinline)) static void worker()
{
	kept = new char[7777]; // thread
}

__attribute__((noinline)) static void brief()
{
	free(kept = malloc(50)); // temporary
}

int main()
{
	std::vector<int> numbers = {600, 700}; // numbers
	auto *basket = new shop::Basket;       // basket

	basket->fill(5000); // fill
	for (int i = 0; i < 4; i++)
		two(); // call of two
	for (int i = 0; i < 10; i++)
		deep(i); // call of deep
	std::for_each(numbers.begin(), numbers.end(), each);
	std::thread(worker).join(); // join
	for (int i = 0; i < 20; i++)
		brief();
	return 0;
}
