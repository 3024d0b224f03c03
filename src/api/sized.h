/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Structures of the interface that begin with their size (api/memprof.h). */
#ifndef API_SIZED_H
#define API_SIZED_H

#include <stddef.h>
#include "lib/err.h"

/* Copies the caller's structure to @to; what it does not have, or all if @from is NULL, is 0 there.  Return: 0, or
 * -E2BIG with @err if it is smaller than its size member, or has more than @to, and that is not 0. */
int sized_take(const void *from, void *to, size_t to_size, struct mp_err *err);
/* Copies @from to the caller's structure, as far as it has room; what @from does not have becomes 0.  The caller's
 * size, its first member, stays. */
void sized_give(const void *from, size_t from_size, void *to);

#endif
