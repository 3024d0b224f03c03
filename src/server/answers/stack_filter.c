/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/stack_filter.h"

static const char *const names[] = {"function_regex",	       "source_regex",
				    "backtrace_depth_min",     "backtrace_depth_max",
				    "negative_function_regex", "negative_source_regex"};
#define WANTING	 4u /* the first ones */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int stack_filter_make(const struct call *c, struct filter *f, bool *wants, struct mp_err *err)
{
	int ret = 0;

	*wants = false;
	filter_init(f);
	for (size_t i = 0; i < COUNT(names) && !ret; i++) {
		const char *value = call_text(c, names[i]);

		if (!value)
			continue;
		ret = filter_set_as(f, names[i], names[i], value, err);
		*wants |= i < WANTING;
	}
	if (ret)
		filter_free(f);
	return ret;
}
