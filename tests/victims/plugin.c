/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library whose one function, NAME, allocates.  All such libraries have the same layout, so that one can be
 * loaded exactly where another one was. */
#include <stdlib.h>

void *NAME(size_t size);

void *NAME(size_t size)
{
	char *p = malloc(size);

	if (p)
		p[0] = 1;
	return p;
}
