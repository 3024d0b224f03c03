/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/target.h"

int target_maps(struct target *t, const struct maps **maps)
{
	int ret = t->maps_known ? 0 : maps_read(t->pid, &t->maps);

	t->maps_known = !ret;
	*maps = &t->maps;
	return ret;
}

void target_maps_changed(struct target *t)
{
	maps_free(&t->maps);
	t->maps_known = false;
}
