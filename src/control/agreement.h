/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which options of a recording can be combined, and their defaults. */
#ifndef CONTROL_AGREEMENT_H
#define CONTROL_AGREEMENT_H

#include "control/options.h"
#include "lib/err.h"

/* Checks that the options agree, and fills in the defaults of those that were not given.  Return: 0, or -EINVAL with
 * @err (MP_EXIT_USAGE), which names them as the command line does. */
int options_agree(struct recording_options *o, struct mp_err *err);

#endif
