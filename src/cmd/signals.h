/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signals that tell a recording to pause and to end. */
#ifndef CMD_SIGNALS_H
#define CMD_SIGNALS_H

#include "control/orders.h"

/* SIGUSR1 pauses and resumes the recording; SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP end it.  They
 * stay blocked afterwards.  Return: orders that need no cleanup. */
const struct recording_orders *orders_by_signal(void);

#endif
