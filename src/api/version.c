/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/memprof.h"

const char *memprof_version(void)
{
	return MEMPROF_VERSION;
}
