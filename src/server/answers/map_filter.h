/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conditions on maps: the parameters of the endpoint maps under bytehound's names. */
#ifndef SERVER_ANSWERS_MAP_FILTER_H
#define SERVER_ANSWERS_MAP_FILTER_H

#include "server/answers/map_list.h"
#include "server/answers/stack_filter.h"
#include "server/endpoint.h"

/* For an endpoint's own parameters. */
/* clang-format off */
#define MAP_FILTER_PARAMETERS \
	{"from", PARAMETER_TIME, 0, NULL}, \
	{"to", PARAMETER_TIME, 0, NULL}, \
	{"lifetime", PARAMETER_WORD, 0, map_lifetime_words}, \
	{"address_min", PARAMETER_NUMBER, 0, NULL}, \
	{"address_max", PARAMETER_NUMBER, 0, NULL}, \
	{"size_min", PARAMETER_NUMBER, 0, NULL}, \
	{"size_max", PARAMETER_NUMBER, 0, NULL}, \
	{"lifetime_min", PARAMETER_DURATION, 0, NULL}, \
	{"lifetime_max", PARAMETER_DURATION, 0, NULL}, \
	{"peak_rss_min", PARAMETER_NUMBER, 0, NULL}, \
	{"peak_rss_max", PARAMETER_NUMBER, 0, NULL}, \
	{"alive_at", PARAMETER_TIME, 0, NULL}, \
	{"alive_at_2", PARAMETER_TIME, 0, NULL}, \
	{"backtraces", PARAMETER_NUMBER, UINT32_MAX, NULL}, \
	{"deallocation_backtraces", PARAMETER_NUMBER, UINT32_MAX, NULL}, \
	STACK_PARAMETERS, \
	{"jemalloc", PARAMETER_WORD, 0, map_choice_words}, \
	{"bytehound", PARAMETER_WORD, 0, map_choice_words}, \
	{"readable", PARAMETER_WORD, 0, map_choice_words}, \
	{"writable", PARAMETER_WORD, 0, map_choice_words}, \
	{"executable", PARAMETER_WORD, 0, map_choice_words}, \
	{"custom_filter", PARAMETER_TEXT, 0, NULL}
/* clang-format on */
extern const char *const map_lifetime_words[], *const map_choice_words[];

struct map_filter {
	const struct call *call;
	const struct model *m;
	uint8_t *stack;	  /* [id]: passes the conditions on stacks; NULL: there are none */
	bool needs_stack; /* maps without a stack do not pass */
};

/* Return: 0 with @f filled, to be freed by map_filter_free(), or a negative errno with @err. */
int map_filter_make(const struct answer *a, struct map_filter *f, struct mp_err *err);
void map_filter_free(struct map_filter *f);
bool map_filter_has(const struct map_filter *f, const struct map *map);

#endif
