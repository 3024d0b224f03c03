/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's clock on architectures without a suitable counter. */
#include "agent/clock.h"

uint64_t ticks(void)
{
	return clock_read(control());
}
