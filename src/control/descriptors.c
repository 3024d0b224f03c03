/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>
#include "lib/human.h"

/* Can @n more files be opened?  Every root file system has "/", but not each has /dev/null. */
static bool are_left(uint32_t n)
{
	uint32_t got = 0;
	int fd[64];

	while (got < n && got < 64 && (fd[got] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		got++;
	for (uint32_t i = 0; i < got; i++)
		close(fd[i]);
	return got == n;
}

int want_descriptors(uint32_t n, struct mp_err *err)
{
	if (are_left(n))
		return 0;
	return mp_fail(err, MP_EXIT_NO_ROOM, -EMFILE,
		       "memprof cannot open %u more file%s (RLIMIT_NOFILE), which it needs to "
		       "attach and detach; nothing was touched",
		       n, plural(n));
}
