/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many files this process may have open. */
#ifndef LIB_OPEN_FILES_H
#define LIB_OPEN_FILES_H

#include <sys/resource.h>

/* Raises the soft limit (RLIMIT_NOFILE) to the hard one, if that is possible. */
static inline void open_files_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

#endif
