/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/names.h"

#include <stddef.h>
#include "formats/session.h"

const char *hook_name_at(const struct hook_plan *plan, uint64_t pc)
{
	if (!(pc & SS_PC_EXACT))
		return NULL;
	vec_for_each (&plan->hooks, h) {
		if (h->addr == (pc & ~SS_PC_EXACT))
			return h->name[0] == '_' && h->name[1] == 'Z' ? NULL : h->name;
	}
	return NULL;
}
