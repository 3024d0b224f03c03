/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What answers read of a call.  Apart from call.c, which uses the list of endpoints, and so the answers. */
#include "server/call.h"

#include <string.h>
#include "export/lists/view.h"
#include "model/filter/amount.h"
#include "server/endpoint.h"

const char *const order_words[] = {"asc", "dsc", NULL};

bool call_word_index(const char *const *words, const char *value, uint32_t *index)
{
	for (uint32_t i = 0; words[i]; i++) {
		if (!strcmp(words[i], value)) {
			*index = i;
			return true;
		}
	}
	return false;
}

bool call_find(const struct call *c, const char *name, uint32_t *index)
{
	const struct parameter *own = c->endpoint->own;

	for (uint32_t i = 0; own && own[i].name; i++) {
		if (!strcmp(own[i].name, name)) {
			*index = i;
			return true;
		}
	}
	return false;
}

const char *call_text(const struct call *c, const char *name)
{
	uint32_t i;

	return call_find(c, name, &i) ? c->value[i] : NULL;
}

uint64_t call_number(const struct call *c, const char *name, uint64_t otherwise)
{
	const char *text = call_text(c, name);
	uint64_t n;

	return text && amount_integer(text, &n) ? n : otherwise;
}

bool call_true(const struct call *c, const char *name)
{
	const char *text = call_text(c, name);

	return text && !strcmp(text, "true");
}

uint32_t call_word(const struct call *c, const char *name)
{
	uint32_t i, word = 0;

	if (call_find(c, name, &i) && c->value[i])
		(void)call_word_index(c->endpoint->own[i].words, c->value[i], &word);
	return word;
}

void call_view(const struct call *c, struct view *v)
{
	*v = (struct view){.sort = call_word(c, "sort_by"),
			   .descending = call_word(c, "order") == 1,
			   .skip = call_number(c, "skip", 0),
			   .count = call_number(c, "count", VIEW_ALL),
			   .json = true};
}
