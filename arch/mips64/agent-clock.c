/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's clock, where no counter serves. */
#include "agent/clock.h"

uint64_t ticks(void)
{
	return clock_read(control());
}
