/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char scheme[] = "http://";

int target_split(const char *uri, struct target *t)
{
	size_t n = sizeof(scheme) - 1, length;
	char *path, *query;

	*t = (struct target){.text = strdup(uri)};
	if (!t->text)
		return -ENOMEM;
	path = t->text;
	if (!strncasecmp(t->text, scheme, n)) {
		length = strcspn(t->text + n, "/?");
		path = t->text + n + length;
		/* Its end is the first character of the path. */
		memmove(t->text, t->text + n, length);
		t->text[length] = 0;
		t->host = t->text;
	}
	query = strchr(path, '?');
	if (query)
		*query++ = 0;
	t->path = path;
	t->query = query ? query : path + strlen(path);
	return 0;
}

void target_free(struct target *t)
{
	free(t->text);
	*t = (struct target){0};
}
