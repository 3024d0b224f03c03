/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Structures of the interface that begin with their size (api/memprof.h). */
#ifndef API_SIZED_H
#define API_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/err.h"

/* Copies the caller's structure to @to; what it does not have is 0 there.  Return: false if it is smaller than its
 * size member, or has more than @to, and that is not 0. */
bool sized_take(const void *from, size_t from_size, void *to, size_t to_size);
/* Return: a negative errno, with @err for a sized_take() that returned false. */
int sized_refuse(struct mp_err *err);
/* Copies @from to the caller's structure, as far as it has room; what @from does not have becomes 0.  The caller's
 * size, its first member, stays. */
void sized_give(const void *from, size_t from_size, void *to);

#endif
