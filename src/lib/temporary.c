/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int temporary_make(const char *name, char *dir, size_t size, struct mp_err *err)
{
	const char *tmp = getenv("TMPDIR");
	const int n = snprintf(dir, size, "%s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", name);
	int ret = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;

	if (!ret && !mkdtemp(dir))
		ret = -errno;
	if (!ret)
		return 0;
	*dir = 0;
	return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot make a temporary directory: %s",
		       strerror(-ret));
}

void temporary_remove(const char *dir)
{
	DIR *d = *dir ? opendir(dir) : NULL;
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	rmdir(dir);
}
