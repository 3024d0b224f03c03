/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/unpacked.h"

#include <gelf.h>
#include <string.h>

#define RATIO 32u
#define SPARE (64ull << 20)

struct cursor {
	const uint8_t *at, *end;
};

static uint64_t left(const struct cursor *c)
{
	return (uint64_t)(c->end - c->at);
}

static bool skip(struct cursor *c, uint64_t n)
{
	if (n > left(c))
		return false;
	c->at += n;
	return true;
}

/*
 * Adds the sizes of the LZMA2 chunks of one block.  Control byte: 0: end; 1 and 2: uncompressed;
 * highest bit set: compressed, and the low five bits are part of the size; from 0xc0 on: a byte of
 * properties follows.  Return: whether the end was found.
 */
static bool add_chunks(struct cursor *c, uint64_t *sum)
{
	while (left(c)) {
		const uint8_t *p = c->at;
		uint8_t control = *p;

		if (!control)
			return skip(c, 1);
		if (control < 0x80) {
			uint64_t size = left(c) < 3 ? 0 : (uint64_t)(p[1] << 8 | p[2]) + 1;

			if (!size || !skip(c, 3 + size))
				return false;
			*sum += size;
			continue;
		}
		if (left(c) < 6)
			return false;
		*sum += (uint64_t)((control & 0x1f) << 16 | p[1] << 8 | p[2]) + 1;
		if (!skip(c, 5u + (control >= 0xc0) + (uint64_t)(p[3] << 8 | p[4]) + 1))
			return false;
	}
	return false;
}

/* The .xz file format, 1.0.4: a header of 12 bytes, the eighth of which gives the size of checks;
 * blocks, whose header begins with its size in words minus one; an index, which begins with 0. */
uint64_t unpacked_xz(const uint8_t *xz, uint64_t n)
{
	struct cursor c = {xz, xz + n};
	uint32_t check_type = n > 7 ? xz[7] & 15 : 0;
	uint32_t check = check_type ? 4u << (check_type - 1) / 3 : 0;
	uint64_t sum = 0;

	if (!skip(&c, 12))
		return 0;
	while (left(&c) && *c.at) {
		const uint8_t *data;

		if (!skip(&c, (*c.at + 1ull) * 4))
			break;
		data = c.at;
		if (!add_chunks(&c, &sum) ||
		    !skip(&c, (4 - (uint64_t)(c.at - data) % 4) % 4 + check))
			break;
	}
	return sum;
}

static uint64_t section_unpacked(Elf_Scn *scn, const GElf_Shdr *sh, const char *name)
{
	uint64_t size = 0;
	GElf_Chdr ch;
	Elf_Data *d;

	if (sh->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &ch) ? ch.ch_size : 0;
	if (strcmp(name, ".gnu_debugdata") && strncmp(name, ".zdebug", 7))
		return 0;
	d = elf_rawdata(scn, NULL);
	if (!d || !d->d_buf)
		return 0;
	if (name[1] == 'g')
		return unpacked_xz(d->d_buf, d->d_size);
	/* "ZLIB" and the size, big-endian. */
	for (size_t i = 4; i < 12 && d->d_size >= 12; i++)
		size = size << 8 | ((const uint8_t *)d->d_buf)[i];
	return size;
}

bool unpacked_is_sane(Elf *elf, uint64_t size)
{
	uint64_t sum = 0, most = SPARE + RATIO * size;
	Elf_Scn *scn = NULL;
	size_t names;

	/* No sections */
	if (elf_getshdrstrndx(elf, &names))
		return true;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;
		GElf_Shdr sh;
		uint64_t more;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS ||
		    !(name = elf_strptr(elf, names, sh.sh_name)))
			continue;
		more = section_unpacked(scn, &sh, name);
		if (more > most || (sum += more) > most)
			return false;
	}
	return true;
}
