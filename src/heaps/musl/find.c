/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the bins of musl's old malloc without symbols.  A bit map of the nonempty bins is followed
 * by 64 bins, and the first chunk of each bin points back to it.
 */
#include <string.h>
#include "heaps/musl/musl.h"
#include "heaps/scan.h"

#define MAX_ODD_BINS 2 /* that threads can be changing */

struct mal_search {
	uint64_t at;
	struct musl_old_mal *mal;
};

bool musl_is_there(const struct image *img)
{
	vec_for_each (&img->maps, m) {
		const char *name = image_map_name(m);

		if (m->exec && (!strcmp(name, "libc.so") || !strncmp(name, "ld-musl-", 8)))
			return true;
	}
	return false;
}

static bool valid_head(struct image *img, const struct musl_old_bin *b, uint64_t bin_chunk)
{
	struct musl_old_chunk c;
	uint64_t behind;

	return image_read_all(img, b->head, &c, sizeof(c)) && c.prev == bin_chunk &&
	       !(c.csize & MUSL_OLD_IN_USE) && musl_old_plausible(c.csize) &&
	       image_word(img, b->head + c.csize, &behind) && behind == c.csize;
}

/* A test that needs no reads, since most words fail it. */
static bool maybe_mal(const uint64_t *words)
{
	for (int i = 0; words[0] && i < MUSL_OLD_BINS; i++) {
		const uint64_t *bin = words + 1 + 3ul * i;

		if ((uint32_t)bin[0] > 1 || !bin[1] != !bin[2] || (words[0] >> i & 1 && !bin[1]))
			return false;
	}
	return words[0];
}

static bool valid_mal(struct image *img, const struct mal_search *s)
{
	int valid = 0, odd = 0;

	for (int i = 0; i < MUSL_OLD_BINS; i++) {
		const struct musl_old_bin *b = &s->mal->bins[i];
		uint64_t chunk = musl_old_bin_chunk(s->at, i);

		if (b->head && (!scan_writable(img, b->head) || !scan_writable(img, b->tail)))
			return false;
		if (!(s->mal->binmap >> i & 1))
			odd += b->head && b->head != chunk;
		else if (valid_head(img, b, chunk))
			valid++;
		else
			odd++;
	}
	return valid && odd <= MAX_ODD_BINS;
}

static int find_mal(const struct scan_data *d, void *arg)
{
	struct mal_search *s = arg;

	for (size_t i = 0; i + sizeof(*s->mal) / 8 <= d->n; i++) {
		if (!maybe_mal(d->words + i))
			continue;
		memcpy(s->mal, d->words + i, sizeof(*s->mal));
		s->at = d->start + i * 8;
		if (valid_mal(d->img, s))
			return 1;
	}
	return 0;
}

int musl_old_find(struct image *img, uint64_t *at, struct musl_old_mal *mal)
{
	struct mal_search s = {.mal = mal};
	int ret = scan_modules(img, find_mal, &s);

	*at = s.at;
	return ret;
}
