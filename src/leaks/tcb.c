/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/tcb.h"

#include <stdlib.h>
#include <string.h>
#include "leaks/growth/objects.h"

/* Range around the thread pointer: where struct pthread ends, and thread-local variables above it.
 */
#define NEAR_BELOW 8192u
#define NEAR_ABOVE 65536u

/* tcbhead_t if variables are below the thread pointer: tcb, dtv, self (x86_64/nptl/tls.h). */
#define SELF 16

/* struct pthread if variables are above it (nptl/descr.h), offsets in words: links to the next and
 * previous one in its list; the thread id, which the kernel clears when the thread ends (and
 * pthread_join() sets to -1); up to PTHREAD_MAX, start and length of its stack. */
#define LINKS	    24
#define TID	    26
#define PTHREAD_MAX 512

struct window {
	uint64_t low, start, end; /* the memory range begins at low */
	size_t n;
	uint8_t bytes[NEAR_ABOVE];
};

static bool alive(const struct image *img, uint64_t tcb)
{
	vec_for_each (&img->threads, th) {
		if (th->tls == tcb)
			return true;
	}
	return false;
}

static uint64_t word_of(const struct image *img, const struct window *w, size_t i)
{
	return arch_word(img->arch, w->bytes + i * img->arch->word_size);
}

static uint64_t find_below(const struct image *img, const struct window *w)
{
	for (size_t i = 0; (i + 1) * 8 + SELF <= w->n; i++) {
		uint64_t at = w->start + 8 * i;

		if (word_of(img, w, i) == at && word_of(img, w, i + SELF / 8) == at)
			return alive(img, at) ? 0 : at;
	}
	return 0;
}

/* Do the neighbours in the list point back to @node? */
static bool in_list(struct image *img, uint64_t node, uint64_t next, uint64_t prev)
{
	uint64_t back, forth;

	return next && prev && next != node &&
	       image_word(img, next + img->arch->word_size, &back) && back == node &&
	       image_word(img, prev, &forth) && forth == node;
}

/* The end of the stack described by the control block at @at, word @i, if that stack contains all
 * memory below it; else 0. */
static uint64_t end_of_stack(const struct image *img, const struct window *w, uint64_t at, size_t i)
{
	for (size_t k = i + TID; k < i + PTHREAD_MAX && (k + 2) * img->arch->word_size <= w->n;
	     k++) {
		uint64_t stack = word_of(img, w, k), size = word_of(img, w, k + 1);

		if (stack && !(stack % img->page_size) && !(size % img->page_size) &&
		    stack <= w->low && size > at - stack && size <= w->end - stack)
			return stack + size;
	}
	return 0;
}

/* Bytes from a control block to the thread pointer, measured on a living thread; 0: not known. */
static uint64_t distance_of_tp(struct image *img)
{
	const size_t word = img->arch->word_size;
	uint64_t next, prev;
	int32_t tid;

	vec_for_each (&img->threads, th) {
		uint64_t tp = th->tls - img->arch->tls.bias;

		for (size_t i = TID + 1; th->tls && i < PTHREAD_MAX; i++) {
			uint64_t at = tp - i * word;

			if (image_word(img, at + LINKS * word, &next) &&
			    image_word(img, at + (LINKS + 1) * word, &prev) &&
			    image_read_all(img, at + TID * word, &tid, sizeof(tid)) && tid > 0 &&
			    in_list(img, at + LINKS * word, next, prev))
				return i * word;
		}
	}
	return 0;
}

static uint64_t find_above(struct image *img, const struct window *w, uint64_t *until)
{
	const size_t word = img->arch->word_size;

	for (size_t i = 0; (i + TID + 1) * word <= w->n; i++) {
		uint64_t next = word_of(img, w, i + LINKS), prev = word_of(img, w, i + LINKS + 1);
		uint64_t at = w->start + word * i;
		uint64_t stack, distance, head;
		int32_t tid;

		memcpy(&tid, w->bytes + (i + TID) * word, sizeof(tid));
		if (tid > 0 || !in_list(img, at + LINKS * word, next, prev))
			continue;
		stack = end_of_stack(img, w, at, i);
		if (!stack)
			continue;
		/* The thread's variables follow tcbhead_t, which has two words.  It is below the
		 * thread pointer if that points far into the variables (MIPS). */
		distance = stack == w->end ? distance_of_tp(img) : 0;
		head = img->arch->tls.bias ? 0 : 2 * word;
		if (distance && at + distance + head < *until)
			*until = at + distance + head;
		return at;
	}
	return 0;
}

uint64_t tcb_dead(struct image *img, uint64_t start, uint64_t end, uint64_t *until)
{
	const uint64_t near = img->arch->tls.above ? NEAR_ABOVE : NEAR_BELOW;
	struct window *w;
	uint64_t found;

	/* Without the thread pointers of all threads, living and dead control blocks look the same.
	 */
	vec_for_each (&img->threads, th) {
		if (!img->arch->tls.above && !th->tls)
			return 0;
	}
	*until = end;
	w = malloc(sizeof(*w));
	if (!w || !img->threads.n) {
		free(w);
		return 0;
	}
	w->low = start;
	w->end = end;
	w->start = end - start > near ? end - near : start;
	w->n = image_read(img, w->start, w->bytes, (size_t)(end - w->start));
	found = img->arch->tls.above ? find_above(img, w, until) : find_below(img, w);
	free(w);
	return found;
}

uint64_t tcb_guard(struct image *img)
{
	static const char *const names[] = {"__pointer_chk_guard", "__pointer_chk_guard_local"};
	uint64_t at, guard = 0;

	for (size_t i = 0; img->arch->guard.kind == ARCH_GUARD_LD && !guard && i < 2; i++) {
		if (!object_find(img, names[i], &at) || !image_word(img, at, &guard))
			guard = 0;
	}
	if (img->arch->guard.kind != ARCH_GUARD_TCB)
		return guard;
	vec_for_each (&img->threads, th) {
		if (th->tls && image_word(img, th->tls + img->arch->guard.offset, &guard) && guard)
			break;
	}
	return guard;
}

uint64_t tcb_demangle(const struct arch *arch, uint64_t value, uint64_t guard)
{
	const unsigned int bits = 8u * arch->word_size, by = arch->guard.rotate;
	const uint64_t mask = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;

	if (by)
		value = (value >> by | value << (bits - by)) & mask;
	return value ^ guard;
}
