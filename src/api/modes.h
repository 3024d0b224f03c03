/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modes of memprof_leaks_find() and memprof_heap_take(). */
#ifndef API_MODES_H
#define API_MODES_H

#include "api/error.h"
#include "snapshot/snapshot.h"

/* Plans how to read the memory of @t.  @mode: enum memprof_mode, or any other number, which is refused.
 * @max_pause_ms: 0: any.  Return: 0 or a negative errno with @err. */
int mode_plan(struct snapshot_plan *plan, struct target *t, int mode, uint64_t max_pause_ms,
	      struct mp_err *err);
/* As api_error(), for what failed in a mode: a pause that would be too long is MEMPROF_TIMEOUT. */
int mode_error(struct memprof_error *out, int ret, struct mp_err *err);

#endif
