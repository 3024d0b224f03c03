/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conditions on stacks of endpoints that have these parameters as their own, because what they list
 * are not allocations. */
#ifndef SERVER_ANSWERS_STACK_FILTER_H
#define SERVER_ANSWERS_STACK_FILTER_H

#include <stdbool.h>
#include "model/filter/filter.h"
#include "server/endpoint.h"

/* For an endpoint's own parameters. */
/* clang-format off */
#define STACK_PARAMETERS \
	{"backtrace_depth_min", PARAMETER_NUMBER, 0, NULL}, \
	{"backtrace_depth_max", PARAMETER_NUMBER, 0, NULL}, \
	{"function_regex", PARAMETER_REGEX, 0, NULL}, \
	{"source_regex", PARAMETER_REGEX, 0, NULL}, \
	{"negative_function_regex", PARAMETER_REGEX, 0, NULL}, \
	{"negative_source_regex", PARAMETER_REGEX, 0, NULL}
/* clang-format on */

/**
 * stack_filter_make() - take the conditions from a call
 * @wants: set if one of them wants something to be in the stack, which no empty stack has
 *
 * Return: 0 with @f to be freed by filter_free(), or a negative errno with @err.
 */
int stack_filter_make(const struct call *c, struct filter *f, bool *wants, struct mp_err *err);

#endif
