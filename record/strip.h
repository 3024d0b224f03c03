/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Culling afterwards: a recording without the blocks that lived for a short time only. */
#ifndef RECORD_STRIP_H
#define RECORD_STRIP_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

/**
 * recording_strip() - copy a recording; of freed blocks that lived shorter than @age_ns only the
 * sums are kept, as record/cull.h does it
 * @age_ns: UINT64_MAX: of all freed blocks
 * @truncated: set to whether @from was cut off
 *
 * Return: 0, or a negative errno with @err filled (a sample cannot be stripped).
 */
int recording_strip(const char *from, const char *to, uint64_t age_ns, bool *truncated,
		    struct mp_err *err);

#endif
