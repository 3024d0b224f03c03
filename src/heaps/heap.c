/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include "lib/by_number.h"

#define MAX_DAMAGED 100

int heap_add(struct heap *h, uint64_t addr, uint64_t size)
{
	struct heap_block b = {addr, size};

	return vec_push(&h->blocks, b);
}

int heap_own(struct heap *h, uint64_t start, uint64_t end, enum heap_kind kind)
{
	struct heap_range r = {start, end, kind};

	return vec_push(&h->owned, r);
}

void heap_damage(struct heap *h, uint64_t addr, const char *fmt, ...)
{
	struct heap_damage d = {.addr = addr};
	va_list ap;

	if (h->changing || h->damaged.n >= MAX_DAMAGED)
		return;
	va_start(ap, fmt);
	vsnprintf(d.what, sizeof(d.what), fmt, ap);
	va_end(ap);
	if (vec_push(&h->damaged, d))
		heap_doubt(h, "no memory to list damaged places");
}

void heap_was_changing(struct heap *h)
{
	h->changing = true;
	vec_free(&h->damaged);
}

static void doubt(struct heap *h, const char *fmt, va_list ap)
{
	h->exact = false;
	if (!h->doubt[0])
		vsnprintf(h->doubt, sizeof(h->doubt), fmt, ap);
}

void heap_doubt(struct heap *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	doubt(h, fmt, ap);
	va_end(ap);
}

void heap_doubt_now(struct heap *h, const char *fmt, ...)
{
	va_list ap;

	h->passing = true;
	va_start(ap, fmt);
	doubt(h, fmt, ap);
	va_end(ap);
}

static bool sorted(const struct heap *h)
{
	for (size_t i = 1; i < h->blocks.n; i++) {
		if (h->blocks.at[i - 1].addr > h->blocks.at[i].addr)
			return false;
	}
	return true;
}

int heap_skip(struct heap *h, uint64_t start, uint64_t end)
{
	struct heap_range r = {.start = start, .end = end};

	return start < end ? vec_push(&h->skipped, r) : 0;
}

void heap_sort_owned(struct heap *h)
{
	size_t n = 0;

	if (!h->owned.n)
		return;
	vec_sort(&h->owned, by_number);
	for (size_t i = 0; i < h->owned.n; i++) {
		struct heap_range *r = &h->owned.at[i], *last = n ? &h->owned.at[n - 1] : NULL;

		if (last && last->kind == r->kind && r->start <= last->end) {
			if (r->end > last->end)
				last->end = r->end;
		} else {
			h->owned.at[n++] = *r;
		}
	}
	h->owned.n = n;
}

void heap_finish(struct heap *h)
{
	size_t n = 0;

	if (!sorted(h))
		vec_sort(&h->blocks, by_number);
	h->live_bytes = 0;
	for (size_t i = 0; i < h->blocks.n; i++) {
		if (n && h->blocks.at[n - 1].addr == h->blocks.at[i].addr)
			continue;
		h->blocks.at[n++] = h->blocks.at[i];
		h->live_bytes += h->blocks.at[i].size;
	}
	h->blocks.n = n;
	heap_sort_owned(h);
}

void heap_free(struct heap *h)
{
	vec_free(&h->blocks);
	vec_free(&h->owned);
	vec_free(&h->skipped);
	vec_free(&h->damaged);
}

const struct heap_range *heap_owner(const struct heap *h, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (h->owned.at[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && h->owned.at[lo].start <= addr ? &h->owned.at[lo] : NULL;
}
