/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary that memprof attach and run print at the end of a recording. */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include "control/summary.h"

/* Prints the summary on stdout. */
void summary_print(const struct summary *s);

#endif
