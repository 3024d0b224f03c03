/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Culls an existing recording: removes the blocks that lived only for a short time. */
#ifndef RECORD_CULLING_CULL_FILE_H
#define RECORD_CULLING_CULL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

/**
 * recording_strip() - copy a recording and cull freed blocks that lived shorter than @age_ns,
 * keeping only their sums (record/culling/cull.h)
 * @age_ns: UINT64_MAX: cull all freed blocks
 * @truncated: set to whether @from was cut off
 *
 * Return: 0, or a negative errno with @err filled (a sample cannot be stripped).
 */
int recording_strip(const char *from, const char *to, uint64_t age_ns, bool *truncated,
		    struct mp_err *err);

#endif
