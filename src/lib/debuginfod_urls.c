/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/debuginfod_urls.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE "DEBUGINFOD_URLS"

static char *taken;

void debuginfod_urls_take(void)
{
	const char *value = getenv(VARIABLE);

	if (value)
		taken = strdup(value);
	unsetenv(VARIABLE);
}

void debuginfod_urls_restore(void)
{
	if (taken)
		setenv(VARIABLE, taken, 1);
}

const char *debuginfod_urls(enum debuginfod_ask ask)
{
	if (ask == DEBUGINFOD_NEVER)
		return NULL;
	if (taken && *taken)
		return taken;
	return ask == DEBUGINFOD_ALWAYS ? DEBUGINFOD_DEFAULT : NULL;
}
