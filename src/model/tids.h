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

/* Return: the index of @tid; if it is new, the number of ids seen before; TIDS_NONE when out of
 * memory. */
uint32_t tids_index(struct tid_table *t, uint32_t tid);
void tids_free(struct tid_table *t);

#endif
