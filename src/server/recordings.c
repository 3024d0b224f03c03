/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/recordings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/file.h"
#include "lib/hex.h"

/* The pieces of a recording have the same id, which the number of the piece tells apart. */
static void id_of(const struct mp_info *info, char *text)
{
	uint8_t id[16];

	memcpy(id, info->id, sizeof(id));
	for (uint32_t i = 0; i < 4; i++)
		id[12 + i] ^= (uint8_t)(info->piece >> (24 - 8 * i));
	hex_text(id, sizeof(id), text);
}

int recordings_add(struct recordings *r, const char *path, bool *known, struct mp_err *err)
{
	struct recording one = {0};
	struct mpf_reader *reader;
	struct mp_info info;
	uint32_t index;
	int ret = mpf_open(path, &reader, &info, err);

	if (ret)
		return ret;
	id_of(&info, one.id);
	one.pid = info.processes ? 0 : (pid_t)info.pid;
	mpf_reader_free(reader);
	*known = recordings_find(r, one.id, &index);
	if (*known)
		return 0;
	one.path = realpath(path, NULL);
	if (one.path && !vec_push(&r->at, one))
		return 0;
	free(one.path);
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

void recordings_free(struct recordings *r)
{
	vec_for_each (&r->at, one)
		free(one->path);
	vec_free(&r->at);
}

bool recordings_find(const struct recordings *r, const char *id, uint32_t *index)
{
	for (uint32_t i = r->at.n; i-- > 0;) {
		if (!strcmp(id, "last") || !strcmp(id, r->at.at[i].id)) {
			*index = i;
			return true;
		}
	}
	return false;
}
