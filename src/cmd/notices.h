/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints what a recording reports: results on stdout, messages on stderr. */
#ifndef CMD_NOTICES_H
#define CMD_NOTICES_H

#include <stdbool.h>
#include <stdint.h>
#include "control/notices.h"

/* Progress is one line on a terminal, and a line a minute elsewhere.  @background: write nothing to stderr once the recording has begun.  Return: a static
 * structure. */
const struct notices *notices_printed(bool background);

/* Prints how many processes forked from a recorded one were restored.  Prints nothing for 0. */
void tell_restored(uint32_t n);

#endif
