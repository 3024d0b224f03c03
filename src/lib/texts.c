/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/texts.h"

#include <stdlib.h>
#include <string.h>

const char *texts_keep(texts_t *texts, const char *text)
{
	char *copy;

	vec_for_each (texts, t) {
		if (!strcmp(*t, text))
			return *t;
	}
	copy = strdup(text);
	if (copy && vec_push(texts, copy)) {
		free(copy);
		return NULL;
	}
	return copy;
}

void texts_free(texts_t *texts)
{
	vec_for_each (texts, t)
		free(*t);
	vec_free(texts);
}
