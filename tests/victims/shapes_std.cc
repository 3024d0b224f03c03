/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Containers of the C++ library.  Prints for each of them: name, address of the variable, elements;
 * then "ready". */
#include <cstdio>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unistd.h>
#include <vector>

std::list<long> g_list;
std::map<int, long> g_map;
std::set<double> g_set;
std::unordered_map<int, long> g_hash;
std::vector<char *> g_vector;

template <typename T> static void print(const char *name, const T &container)
{
	printf("%s %lx %zu\n", name, (long)&container, container.size());
}

int main()
{
	for (int i = 0; i < 10000; i++) {
		g_list.push_back(i);
		g_map[i * 7919 % 10007] = i;
		g_set.insert(i * 7919 % 10007);
		g_hash[i * 17] = i;
	}
	for (int i = 0; i < 1000; i++)
		g_vector.push_back(new char[150]());
	print("g_list", g_list);
	print("g_map", g_map);
	print("g_set", g_set);
	print("g_hash", g_hash);
	print("g_vector", g_vector);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
