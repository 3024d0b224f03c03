/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/sized.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Are all bytes of @from behind the first @known 0? */
static bool rest_is_zero(const char *from, size_t size, size_t known)
{
	for (size_t i = known; i < size; i++) {
		if (from[i])
			return false;
	}
	return true;
}

int sized_take(const void *from, void *to, size_t to_size, struct mp_err *err)
{
	size_t size = 0;

	memset(to, 0, to_size);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size) || !rest_is_zero(from, size, to_size))
		return mp_fail(
		    err, MP_EXIT_USAGE, -E2BIG,
		    "the size of the options is wrong, or they are of a newer libmemprof");
	memcpy(to, from, size < to_size ? size : to_size);
	return 0;
}

void sized_give(const void *from, size_t from_size, void *to)
{
	size_t room;

	memcpy(&room, to, sizeof(room));
	if (room < sizeof(room))
		return;
	memset((char *)to + sizeof(room), 0, room - sizeof(room));
	memcpy((char *)to + sizeof(room), (const char *)from + sizeof(room),
	       (room < from_size ? room : from_size) - sizeof(room));
}
