/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's clock on architectures without a suitable counter. */
#include "agent/clock.h"

uint64_t ag_ticks(void)
{
	return ag_clock_read(ag_control());
}
