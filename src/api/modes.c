/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/modes.h"

#include <errno.h>

int mode_plan(struct snapshot_plan *plan, struct target *t, int mode, uint64_t max_pause_ms,
	      struct mp_err *err)
{
	static const enum snapshot_mode modes[] = {
	    [MEMPROF_MODE_BEST] = SNAPSHOT_ANY,
	    [MEMPROF_MODE_COPY] = SNAPSHOT_COPY,
	    [MEMPROF_MODE_PRE_COPY] = SNAPSHOT_PRE_COPY,
	    [MEMPROF_MODE_IN_PLACE] = SNAPSHOT_IN_PLACE,
	};

	if (mode < MEMPROF_MODE_BEST || mode > MEMPROF_MODE_IN_PLACE)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "there is no mode %d", mode);
	return snapshot_plan(plan, t, modes[mode], max_pause_ms, err);
}

int mode_error(struct memprof_error *out, int ret, struct mp_err *err)
{
	if (ret == -ETIME || ret == -ETIMEDOUT)
		err->exit = MP_EXIT_TIMEOUT;
	return api_error(out, err);
}
