/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/sized.h"

#include <errno.h>
#include <string.h>

bool sized_take(const void *from, size_t from_size, void *to, size_t to_size)
{
	const char *more = from;

	if (from_size < sizeof(size_t))
		return false;
	for (size_t i = to_size; i < from_size; i++) {
		if (more[i])
			return false;
	}
	memset(to, 0, to_size);
	memcpy(to, from, from_size < to_size ? from_size : to_size);
	return true;
}

int sized_refuse(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_USAGE, -E2BIG,
		       "the size of the options is wrong, or they are of a newer libmemprof");
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
