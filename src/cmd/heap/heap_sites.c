/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/heap/heap_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/options/stack_type.h"
#include "lib/intern.h"
#include "model/match.h"
#include "model/names/shown.h"

#define NO_TYPE	     0
#define TYPE_UNKNOWN UINT32_MAX /* the stack was not examined yet */

static int no_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* ------------------------------------------------------------- types -- */

/* Return: the id of the type that the functions of a stack name; NO_TYPE: none. */
static int type_of_stack(struct heap_sites *s, uint32_t stack, uint32_t *id)
{
	struct shown_stack shown;
	bool fresh;
	char *type;

	*id = NO_TYPE;
	if (shown_every(&s->rec.m, stack, &shown))
		return -ENOMEM;
	type = stack_type(&shown);
	if (!type)
		return 0;
	*id = intern_text(s->types, type, &fresh);
	if (!*id || (fresh && vec_push(&s->type, type))) {
		free(type);
		return -ENOMEM;
	}
	if (!fresh)
		free(type);
	return 0;
}

/* Notes the type of each line whose blocks all have the same. */
static int find_types(struct heap_sites *s, const struct match *list, const uint32_t *line)
{
	const uint32_t stacks = s->rec.m.stacks.n;
	uint32_t *of_stack = malloc((stacks + 1ull) * sizeof(*of_stack));
	uint32_t *of_line = malloc((s->lines + 1ull) * sizeof(*of_line));
	int ret = of_stack && of_line ? 0 : -ENOMEM;

	if (!ret) {
		memset(of_stack, 0xff, stacks * sizeof(*of_stack));
		memset(of_line, 0xff, (s->lines + 1ull) * sizeof(*of_line));
	}
	for (uint64_t i = 0; i < s->known_count + s->unknown_count && !ret; i++) {
		uint32_t *type = &of_line[line[i]];

		if (list[i].state == MATCH_UNKNOWN || *type == NO_TYPE)
			continue;
		if (of_stack[list[i].stack] == TYPE_UNKNOWN)
			ret = type_of_stack(s, list[i].stack, &of_stack[list[i].stack]);
		*type = *type == TYPE_UNKNOWN || *type == of_stack[list[i].stack]
			    ? of_stack[list[i].stack]
			    : NO_TYPE;
	}
	for (uint32_t l = 1; l <= s->lines && !ret; l++) {
		if (of_line[l] != TYPE_UNKNOWN && of_line[l] != NO_TYPE)
			s->of[l].type = s->type.at[of_line[l] - 1];
	}
	free(of_stack);
	free(of_line);
	return ret;
}

/* ------------------------------------------------------------- places -- */

/* Notes the place that allocated most of each line. */
static int find_places(struct heap_sites *s, const struct match *list, const uint32_t *line)
{
	struct intern *pairs = intern_new(); /* of line and place */
	VEC(uint64_t) bytes = {0};
	int ret = pairs ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < s->known_count + s->unknown_count && !ret; i++) {
		struct heap_site *of = &s->of[line[i]];
		uint32_t place, id;
		bool fresh;

		if (list[i].state == MATCH_UNKNOWN)
			continue;
		of->known += list[i].usable;
		place = s->places.of_stack[list[i].stack];
		if (place == PLACE_NONE)
			continue;
		id = intern_pair(pairs, line[i], place, &fresh);
		if (!id || (fresh && vec_push(&bytes, 0)) || !bytes.at) {
			ret = -ENOMEM;
			break;
		}
		bytes.at[id - 1] += list[i].usable;
		if (bytes.at[id - 1] > of->bytes) {
			of->bytes = bytes.at[id - 1];
			of->at = &s->places.at.at[place].at;
		}
	}
	vec_free(&bytes);
	intern_free(pairs);
	return ret;
}

/* ------------------------------------------------------------- all of it -- */

/* Lists the blocks that are in a line, and their lines. */
static int list_blocks(const struct census *c, const uint32_t *line_of, struct match **list,
		       uint32_t **line, size_t *n)
{
	size_t in_lines = 0;

	for (size_t i = 0; i < c->blocks.n; i++)
		in_lines += line_of[i] != 0;
	*n = 0;
	*list = calloc(in_lines + 1, sizeof(**list));
	*line = calloc(in_lines + 1, sizeof(**line));
	if (!*list || !*line)
		return -ENOMEM;
	for (size_t i = 0; i < c->blocks.n; i++) {
		if (!line_of[i])
			continue;
		(*list)[*n].addr = c->blocks.at[i].addr;
		(*list)[*n].usable = c->blocks.at[i].size;
		(*line)[(*n)++] = line_of[i];
	}
	return 0;
}

static void sum_up(struct heap_sites *s, const struct match *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const bool known = list[i].state != MATCH_UNKNOWN;

		*(known ? &s->known_count : &s->unknown_count) += 1;
		*(known ? &s->known_bytes : &s->unknown_bytes) += list[i].usable;
	}
}

static int find_sites(struct heap_sites *s, struct match *list, const uint32_t *line, size_t n,
		      struct mp_err *err)
{
	int ret = match_find(&s->rec.m, list, n, s->rec.at_ns, err);

	if (ret)
		return ret;
	/* A block that was freed after the snapshot was allocated where the recording says. */
	for (size_t i = 0; i < n; i++) {
		if (list[i].state == MATCH_FREED)
			list[i].state = MATCH_KNOWN;
	}
	sum_up(s, list, n);
	match_weigh(&s->rec.m, list, n);
	if (places_find(&s->rec.m, GROUP_BY_LINE, COST_LEAKED, false, &s->places))
		return no_memory(err);
	if (find_places(s, list, line) || find_types(s, list, line))
		return no_memory(err);
	return 0;
}

int heap_sites_make(struct heap_sites *s, const struct census *c, const uint32_t *line_of,
		    uint32_t lines, uint64_t taken_ns, struct mp_err *err)
{
	struct match *list = NULL;
	uint32_t *line = NULL;
	size_t n = 0;
	int ret;

	if (!s->rec.path[0])
		return 0;
	ret = recording_of_read(&s->rec, taken_ns, err);
	if (ret)
		return ret;
	s->lines = lines;
	s->types = intern_new();
	s->of = calloc(lines + 1ull, sizeof(*s->of));
	if (!s->types || !s->of || list_blocks(c, line_of, &list, &line, &n))
		ret = no_memory(err);
	else
		ret = find_sites(s, list, line, n, err);
	free(list);
	free(line);
	return ret;
}

int heap_sites_name(const struct heap_sites *s, struct retained_line *l)
{
	int ret = 0;

	/* As deep as the report, at most RETAINED_MAX_DEPTH. */
	for (struct retained_line *c = l->child; c && !ret; c = c->next) {
		const struct heap_site *site = heap_sites_of(s, c->number);

		if (site && site->type && !c->source_of) {
			char *name = strdup(site->type);

			if (!name)
				return -ENOMEM;
			free(c->name);
			c->name = name;
			c->source_of = NAME_STACK;
		}
		ret = heap_sites_name(s, c);
	}
	return ret;
}

const struct heap_site *heap_sites_of(const struct heap_sites *s, uint32_t line)
{
	return s && s->of && line && line <= s->lines && s->of[line].at ? &s->of[line] : NULL;
}

void heap_sites_free(struct heap_sites *s)
{
	vec_for_each (&s->type, t)
		free(*t);
	vec_free(&s->type);
	intern_free(s->types);
	free(s->of);
	s->of = NULL;
	places_free(&s->places);
	recording_of_free(&s->rec);
}
