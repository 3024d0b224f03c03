/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Damages the memory of an image for its reader: some words are replaced, depending on the seed
 * only.  Whatever is read must neither crash nor hang the code under test. */
#ifndef TESTS_DAMAGED_H
#define TESTS_DAMAGED_H

#include <stdint.h>
#include <string.h>
#include "snapshot/image.h"

static struct damage {
	const struct image_ops *sound;
	struct image_ops ops;
	uint64_t seed;
	uint32_t odd, even; /* one of so many words is replaced, by the seed's parity */
} damage;

static uint64_t damaged_word(uint64_t addr, uint64_t word)
{
	uint64_t r = (addr ^ damage.seed) * 0x9e3779b97f4a7c15u;

	r = (r ^ r >> 29) * 0xbf58476d1ce4e5b9u;
	r ^= r >> 32;
	if (r % (damage.seed % 2 ? damage.odd : damage.even))
		return word;
	switch (r >> 32 & 7) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return addr;
	case 3:
		return word + 8;
	case 4:
		return word ^ 1ull << (r >> 40 & 63);
	case 5:
		return word - 16;
	case 6:
		return r;
	default:
		return r & 0xffff;
	}
}

static size_t damaged_fetch(struct image *img, uint64_t addr, void *to, size_t len)
{
	size_t n = damage.sound->fetch(img, addr, to, len);
	uint64_t word;

	for (size_t i = -addr & 7; i + 8 <= n; i += 8) {
		memcpy(&word, (char *)to + i, 8);
		word = damaged_word(addr + i, word);
		memcpy((char *)to + i, &word, 8);
	}
	return n;
}

/* @odd, @even: see struct damage. */
static void damage_begin(struct image *img, uint64_t seed, uint32_t odd, uint32_t even)
{
	damage = (struct damage){img->ops, *img->ops, seed, odd, even};
	damage.ops.fetch = damaged_fetch;
	img->ops = &damage.ops;
}

static void damage_end(struct image *img)
{
	img->ops = damage.sound;
}

#endif
