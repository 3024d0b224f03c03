/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which options of a recording can be combined, and their defaults. */
#ifndef CONTROL_AGREEMENT_H
#define CONTROL_AGREEMENT_H

#include <stdbool.h>
#include "control/options.h"
#include "lib/err.h"

#define OPTION_MIN_RING	   (64u << 10)
#define OPTION_MAX_RING	   (64u << 20)
#define OPTION_MIN_QUEUE   OPTION_MIN_RING
#define OPTION_MIN_PIECE   (64u << 10)
#define OPTION_MIN_SEND	   (256u << 10)
#define OPTION_MAX_SEND	   (4ull << 30)
#define OPTION_MIN_PART	   1000 /* millionths: 0.1% */
#define OPTION_MAX_PART	   1000000
#define OPTION_MAX_STACK   64000
#define OPTION_MAX_TIME_MS (10ull * 366 * 86400 * 1000)

/* Return: whether @bytes can be the size of a ring. */
static inline bool option_is_ring(uint64_t bytes)
{
	return bytes >= OPTION_MIN_RING && bytes <= OPTION_MAX_RING && !(bytes & (bytes - 1));
}

/* Checks that the options are in their ranges and agree, and fills in the defaults of those that were not given.  Return: 0, or -EINVAL with
 * @err (MP_EXIT_USAGE), which names them as the command line does. */
int options_agree(struct recording_options *o, struct mp_err *err);

/* Return: the first option that is given and concerns events, which --live-only does not keep; NULL: none. */
const char *option_of_events(const struct recording_options *o);

#endif
