/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The words of --by and --sort. */
#include <string.h>
#include "top/top.h"

static const char *const by_words[TABLE_BYS] = {"line", "function", "library", "thread", "stack"};
static const char *const sort_words[TABLE_SORTS] = {
    "live", "blocks", "growth", "since-mark", "allocations", "allocated", "temporary", "name"};

static int find(const char *const *words, int n, const char *text)
{
	for (int i = 0; i < n; i++) {
		if (!strcmp(words[i], text))
			return i;
	}
	return -1;
}

bool top_parse_by(const char *text, enum table_by *by)
{
	int i = find(by_words, TABLE_BYS, text);

	if (i >= 0)
		*by = (enum table_by)i;
	return i >= 0;
}

bool top_parse_sort(const char *text, enum table_sort *sort)
{
	int i = find(sort_words, TABLE_SORTS, text);

	if (i >= 0)
		*sort = (enum table_sort)i;
	return i >= 0;
}
