/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/place.h"

#include <string.h>

#define LOWEST	  0x10000ull	 /* above any vm.mmap_min_addr in use */
#define AWAY_HEAP (1ull << 30)	 /* the program break grows upward from [heap] */
#define AWAY	  (64ull << 10)	 /* keeps new mappings apart from others */
#define AWAY_MMAP (512ull << 20) /* the kernel maps downward: keep away if reach permits */

/* User memory can end anywhere above the highest stack; these mappings are the kernel's. */
static bool is_kernels(const struct map *m)
{
	return !strcmp(m->path, "[vsyscall]") || !strcmp(m->path, "[vectors]");
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

uint64_t place_near(const struct maps *maps, uint64_t low, uint64_t high, uint64_t reach,
		    uint64_t length)
{
	uint64_t best = 0, from = LOWEST, away = reach < AWAY_MMAP ? reach / 4 : AWAY_MMAP;

	for (size_t i = 0; i < maps->list.n && !is_kernels(&maps->list.at[i]); i++) {
		const struct map *next = &maps->list.at[i];
		const struct map *before = i ? &maps->list.at[i - 1] : NULL;
		uint64_t to = next->start, start = from, candidate[2];

		if (before && !strcmp(before->path, "[heap]"))
			start += AWAY_HEAP;
		else
			start += AWAY;
		if (to > start)
			to -= (to - start) / 2 < away ? (to - start) / 2 : away;
		from = next->end;
		if (start + length > to)
			continue;
		candidate[0] = start;
		candidate[1] = (to - length) & ~4095ull;
		for (int k = 0; k < 2; k++) {
			uint64_t a = candidate[k];

			if (distance(a, high) > reach || distance(a + length, low) > reach ||
			    distance(a, low) > reach || distance(a + length, high) > reach)
				continue;
			if (!best || distance(a, low) < distance(best, low))
				best = a;
		}
	}
	return best;
}
