/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A growing array of any element type, to be used like this:
 *
 *	VEC(struct map) maps = {0};
 *	if (vec_push(&maps, m)) return -ENOMEM;
 *	vec_for_each(&maps, it) use(it);
 *	vec_free(&maps);
 */
#ifndef LIB_VEC_H
#define LIB_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t n, cap;                                                                     \
	}

/* Makes room for one more element; used by vec_push(). */
static inline int vec_room(void **at, size_t n, size_t *cap, size_t size)
{
	size_t want;
	void *p;

	if (n < *cap)
		return 0;
	want = *cap ? *cap * 2 : 16;
	p = reallocarray(*at, want, size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*cap = want;
	return 0;
}

/* Appends a copy of @elem.  Return: 0 or -ENOMEM, the vector then unchanged. */
#define vec_push(v, elem)                                                                          \
	(vec_room((void **)&(v)->at, (v)->n, &(v)->cap, sizeof(*(v)->at))                          \
	     ? -ENOMEM                                                                             \
	     : ((v)->at[(v)->n++] = (elem), 0))

/* Appends elements of zeroes; used by vec_reach(). */
static inline int vec_zeroes(void **at, size_t *n, size_t *cap, size_t size, uint64_t index)
{
	for (; *n <= index; (*n)++) {
		if (vec_room(at, *n, cap, size))
			return -ENOMEM;
		memset((char *)*at + *n * size, 0, size);
	}
	return 0;
}

/* Makes the vector long enough to have an element @index, with zeroes at its end.  Return: 0 or -ENOMEM, the
 * vector then shorter. */
#define vec_reach(v, index)                                                                        \
	vec_zeroes((void **)&(v)->at, &(v)->n, &(v)->cap, sizeof(*(v)->at), (index))

/* NULL for an empty vector, which has no memory. */
#define vec_end(v)	    ((v)->n ? (v)->at + (v)->n : NULL)
#define vec_for_each(v, it) for (__auto_type it = (v)->n ? (v)->at : NULL; it < vec_end(v); it++)

/* Sorts the elements, as qsort(3) does. */
#define vec_sort(v, compare)                                                                       \
	((v)->n ? qsort((v)->at, (v)->n, sizeof(*(v)->at), (compare)) : (void)0)
/* Searches sorted elements, as bsearch(3) does.  Return: an element that @compare finds equal to @key, or
 * NULL. */
#define vec_search(v, key, compare)                                                                \
	((v)->n ? bsearch((key), (v)->at, (v)->n, sizeof(*(v)->at), (compare)) : NULL)

#define vec_free(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
