/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/cache_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

const char *cache_dir_path(char *buf, size_t size)
{
	const char *own = getenv("MEMPROF_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");

	if (own) {
		snprintf(buf, size, "%s", own);
	} else if (xdg && *xdg == '/') {
		snprintf(buf, size, "%s/memprof", xdg);
	} else if (home && *home == '/') {
		snprintf(buf, size, "%s/.cache", home);
		mkdir(buf, 0700); /* the mode that the XDG base directory specification requires */
		snprintf(buf, size, "%s/.cache/memprof", home);
	} else {
		return NULL;
	}
	return *buf ? buf : NULL;
}
