/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maps thread ids to indices, in the order in which they are first seen. */
#ifndef MODEL_TIDS_H
#define MODEL_TIDS_H

#include <stdint.h>
#include "lib/vec.h"

#define TIDS_NONE UINT32_MAX

struct tid_table {
	VEC(uint32_t) direct; /* [tid]: index + 1; 0: not seen */
	VEC(uint32_t) tid;    /* [index] */
};

/* Return: the index of @tid, which may be new, as tids_index(). */
uint32_t tids_search(struct tid_table *t, uint32_t tid);
/* Return: the index of @tid; if it is new, the number of ids seen before; TIDS_NONE when out of
 * memory. */
static inline uint32_t tids_index(struct tid_table *t, uint32_t tid)
{
	return tid < t->direct.n && t->direct.at[tid] ? t->direct.at[tid] - 1 : tids_search(t, tid);
}
void tids_free(struct tid_table *t);

#endif
