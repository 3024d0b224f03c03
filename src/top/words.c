/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>
#include "top/top.h"

const char *const top_by_words[TABLE_BYS + 1] = {"line",   "function", "library",
						 "thread", "stack",    NULL};
const char *const top_sort_words[TABLE_SORTS + 1] = {"live",	   "blocks",	  "growth",
						     "since-mark", "allocations", "allocated",
						     "temporary",  "name",	  NULL};

static int word_index(const char *const *words, const char *text)
{
	for (int i = 0; words[i]; i++) {
		if (!strcmp(words[i], text))
			return i;
	}
	return -1;
}

bool top_parse_by(const char *text, enum table_by *by)
{
	int i = word_index(top_by_words, text);

	if (i >= 0)
		*by = (enum table_by)i;
	return i >= 0;
}

bool top_parse_sort(const char *text, enum table_sort *sort)
{
	int i = word_index(top_sort_words, text);

	if (i >= 0)
		*sort = (enum table_sort)i;
	return i >= 0;
}
