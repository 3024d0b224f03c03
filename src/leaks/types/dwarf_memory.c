/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/dwarf_memory.h"

#include <stdlib.h>
#include <string.h>

#define PAGE	 4096u
#define LEAST	 1024u /* pages in the cache */
#define MOST	 65536u
#define NONE	 1u
#define TOGETHER 4u /* pages read at once when memory is read in order */

struct page {
	uint64_t addr; /* of the page, or NONE */
	uint32_t n;    /* bytes that could be read */
};

struct dwarf_memory {
	struct image *img;
	size_t pages; /* a power of two */
	struct page *page;
	uint8_t (*bytes)[PAGE];
};

struct dwarf_memory *dwarf_memory_new(struct image *img, uint64_t bytes)
{
	struct dwarf_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->img = img;
	for (m->pages = LEAST; m->pages < MOST && m->pages * PAGE < bytes; m->pages *= 2)
		;
	m->page = malloc(m->pages * sizeof(*m->page));
	m->bytes = malloc(m->pages * sizeof(*m->bytes));
	if (!m->page || !m->bytes) {
		dwarf_memory_free(m);
		return NULL;
	}
	for (size_t i = 0; i < m->pages; i++)
		m->page[i].addr = NONE;
	return m;
}

void dwarf_memory_free(struct dwarf_memory *m)
{
	if (!m)
		return;
	free(m->page);
	free(m->bytes);
	free(m);
}

static size_t slot_of(const struct dwarf_memory *m, uint64_t page)
{
	return (size_t)(page / PAGE) & (m->pages - 1);
}

static bool has(const struct dwarf_memory *m, uint64_t page)
{
	return m->page[slot_of(m, page)].addr == page;
}

/* Neighbours have neighbouring slots, so that several pages are one read. */
static void fetch(struct dwarf_memory *m, uint64_t page)
{
	const bool in_order = has(m, page - PAGE) || has(m, page + PAGE);
	const uint64_t from = in_order ? page & ~(uint64_t)(TOGETHER * PAGE - 1) : page;
	const uint32_t pages = in_order ? TOGETHER : 1;
	const size_t slot = slot_of(m, from);
	size_t n = image_read(m->img, from, m->bytes[slot], (size_t)pages * PAGE);

	/* One that cannot be read hides those behind it. */
	for (uint32_t i = 0; i < pages; i++) {
		m->page[slot + i].addr = n >= PAGE ? from + (uint64_t)i * PAGE : NONE;
		m->page[slot + i].n = PAGE;
		n -= n < PAGE ? n : PAGE;
	}
	if (has(m, page))
		return;
	m->page[slot_of(m, page)].addr = page;
	m->page[slot_of(m, page)].n =
	    (uint32_t)image_read(m->img, page, m->bytes[slot_of(m, page)], PAGE);
}

bool dwarf_memory_number(struct dwarf_memory *m, uint64_t addr, unsigned int size, uint64_t *value)
{
	const uint64_t page = addr & ~(uint64_t)(PAGE - 1);
	const uint32_t at = (uint32_t)(addr - page);
	uint8_t across[8];
	const uint8_t *from = across;
	uint32_t half;
	uint16_t quarter;

	if (addr > UINT64_MAX - (uint64_t)2 * TOGETHER * PAGE || addr < PAGE)
		return false;
	if (at + size > PAGE) {
		if (!image_read_all(m->img, addr, across, size))
			return false;
	} else {
		if (!has(m, page))
			fetch(m, page);
		if (at + size > m->page[slot_of(m, page)].n)
			return false;
		from = &m->bytes[slot_of(m, page)][at];
	}
	/* memprof has the byte order of the processes that it looks at. */
	switch (size) {
	case 8:
		memcpy(value, from, sizeof(*value));
		return true;
	case 4:
		memcpy(&half, from, sizeof(half));
		*value = half;
		return true;
	case 2:
		memcpy(&quarter, from, sizeof(quarter));
		*value = quarter;
		return true;
	case 1:
		*value = *from;
		return true;
	default:
		return false;
	}
}
