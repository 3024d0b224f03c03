/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1u << 20)

static bool is_data(const struct image_map *m)
{
	return m->read && m->write && !m->shared;
}

static bool is_file(const struct image_map *m)
{
	return m->path[0] == '/';
}

/* .bss continues after the last file-backed page of .data, and its map has no name; a heap that
 * begins there has one. */
static bool continues(const struct image_map *m, const struct image_map *next)
{
	return is_data(next) && next->start == m->end && (!is_file(next) || is_file(m));
}

static int visit_range(struct image *img, uint64_t start, uint64_t end,
		       int (*visit)(const struct scan_data *data, void *arg), void *arg)
{
	size_t size = end - start < SCAN_MAX_BYTES ? end - start : SCAN_MAX_BYTES;
	uint64_t *words = malloc(size);
	struct scan_data data = {.img = img, .start = start, .words = words};
	int ret;

	if (!words)
		return -ENOMEM;
	data.n = image_read(img, start, words, size) / sizeof(*words);
	ret = visit(&data, arg);
	free(words);
	return ret;
}

/* @unread: what to return if @m cannot be read.  Return: whether @m contains @text. */
static bool has_text(struct image *img, const struct image_map *m, const char *text, bool unread,
		     uint8_t *buf)
{
	const size_t length = strlen(text);

	for (uint64_t at = m->start; at < m->end; at += CHUNK - length) {
		size_t want = m->end - at < CHUNK ? (size_t)(m->end - at) : CHUNK;
		size_t got = image_read(img, at, buf, want);

		if (!got && at == m->start)
			return unread;
		if (memmem(buf, got, text, length))
			return true;
		if (got < want)
			break; /* the file is shorter than its mapping */
	}
	return false;
}

/* Constants are in mappings without code, except in old programs, whose first mapping has both. */
static bool has_constants(const struct image_map *m)
{
	return m->read && !m->write && !m->shared && (!m->exec || !m->offset);
}

/* @m: data of a module.  Return: as has_text(), or -ENOMEM. */
static int module_has(struct image *img, const struct image_map *m, const char *text, bool unread)
{
	uint8_t *buf = malloc(CHUNK);
	bool found = false;

	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < img->maps.n && !found; i++) {
		const struct image_map *other = &img->maps.at[i];

		found = has_constants(other) && !strcmp(other->path, m->path) &&
			has_text(img, other, text, unread, buf);
	}
	free(buf);
	return found;
}

/* The data of the next module that has at least @bytes of them, from map @i on: map *@first to map
 * *@last.  Return: the map after them, or 0: there is none. */
static size_t next_module(const struct image *img, size_t i, size_t bytes,
			  const struct image_map **first, const struct image_map **last)
{
	for (; i < img->maps.n; i++) {
		*first = *last = &img->maps.at[i];
		if (!is_data(*first) || !is_file(*first))
			continue;
		while (i + 1 < img->maps.n && continues(*last, &img->maps.at[i + 1]))
			*last = &img->maps.at[++i];
		if ((*last)->end - (*first)->start >= bytes)
			return i + 1;
	}
	return 0;
}

bool scan_has_constant(struct image *img, const char *text, size_t bytes)
{
	const struct image_map *m, *last;

	for (size_t i = 0; (i = next_module(img, i, bytes, &m, &last));) {
		if (module_has(img, m, text, false) > 0)
			return true;
	}
	return false;
}

int scan_modules_with(struct image *img, const char *text, size_t bytes,
		      int (*visit)(const struct scan_data *data, void *arg), void *arg)
{
	const struct image_map *m, *last;
	int ret = 0;

	for (size_t i = 0; !ret && (i = next_module(img, i, bytes, &m, &last));) {
		ret = text ? module_has(img, m, text, true) : 1;
		if (ret > 0)
			ret = visit_range(img, m->start, last->end, visit, arg);
	}
	return ret;
}

int scan_modules(struct image *img, int (*visit)(const struct scan_data *data, void *arg),
		 void *arg)
{
	return scan_modules_with(img, NULL, 0, visit, arg);
}

uint64_t scan_nonzero(struct image *img, struct image_view *v, uint64_t *at, uint64_t end)
{
	while (*at < end) {
		const struct image_map *m = image_map_at(img, *at);
		uint64_t run = m ? image_present(img, m, at) : 0, word;

		if (!m)
			return 0;
		if (!run)
			*at = run = m->end;
		for (; *at < run && *at < end; *at += sizeof(word)) {
			const void *p = image_view(img, v, *at, sizeof(word));

			if (!p)
				return 0;
			memcpy(&word, p, sizeof(word));
			if (word)
				return word;
		}
	}
	return 0;
}

bool scan_writable(const struct image *img, uint64_t addr)
{
	const struct image_map *m = image_map_at(img, addr);

	return m && is_data(m);
}

bool scan_all_writable(const struct image *img, uint64_t start, uint64_t end)
{
	while (start < end) {
		const struct image_map *m = image_map_at(img, start);

		/* Allocators can revoke access to parts that they do not use, so access is not
		 * required. */
		if (!m || m->shared || is_file(m))
			return false;
		start = m->end;
	}
	return true;
}

bool scan_has_library(const struct image *img, const char *library)
{
	vec_for_each (&img->maps, m) {
		if (is_file(m) && strstr(image_map_name(m), library))
			return true;
	}
	return false;
}

static bool in_library(const struct image *img, uint64_t pc, const char *library)
{
	const struct image_map *m = image_map_at(img, pc);

	return m && m->exec && strstr(image_map_name(m), library) &&
	       strstr(image_map_name(m), ".so");
}

void scan_doubt_threads(struct image *img, const char *library, struct heap *heap)
{
	unsigned inside = 0;

	vec_for_each (&img->threads, th) {
		uint64_t back = 0;

		if (!th->has_regs)
			continue;
		/* In a leaf function called by the allocator (a system call wrapper, memset) the
		 * return address is on top of the stack. */
		image_word(img, img->arch->regs.get_sp(&th->regs), &back);
		inside += in_library(img, img->arch->regs.get_pc(&th->regs), library) ||
			  in_library(img, back, library);
	}
	if (!inside)
		return;
	heap_was_changing(heap);
	heap_doubt_now(heap, "threads inside the allocator: %u", inside);
}
