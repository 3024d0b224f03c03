/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/glibc/glibc.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static const struct glibc_layout layouts[] = {
    {
	.word = 8,
	.header = 16,
	.chunk_min = 32,
	.align = 16,
	.fastbins = 16,
	.top = 96,
	.bins = 112,
	.next = 2160,
	.system_mem = 2184,
	.arena_size = 2200,
	.heap_header = {32, 48},
	.heap_max = {64 * MIB, 8 * MIB, 4 * GIB, 2 * MIB},
	.n_mmaps = {32, 36},
	.top_pad = {64, 88},
	.tcache_max_bytes = 1032,
	.tcache_entries = {64, 128},
    },
    {
	/* For 32-bit architectures where long double has an alignment of at most 8: ARM, but not
	   i386. */
	.word = 4,
	.header = 8,
	.chunk_min = 16,
	.align = 8,
	.fastbins = 12,
	.top = 52,
	.bins = 60,
	.next = 1092,
	.system_mem = 1104,
	.arena_size = 1112,
	.heap_header = {16, 24},
	.heap_max = {1 * MIB, 8 * MIB, 4 * MIB, 2 * MIB},
	.n_mmaps = {24, 24},
	.top_pad = {40, 52},
	.tcache_max_bytes = 516,
	.tcache_entries = {64, 128},
    },
};

const struct glibc_layout *glibc_layout(const struct arch *arch)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].word == arch->word_size)
			return &layouts[i];
	}
	return NULL;
}
