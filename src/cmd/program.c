/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/program.h"

#include <limits.h>
#include "attach/procfs.h"
#include "model/frames.h"

static struct {
	char executable[PATH_MAX], called[64]; /* as in struct mp_info */
} own;

void program_is_of(pid_t pid)
{
	if (proc_exe(pid, own.executable, sizeof(own.executable)) ||
	    !proc_called(pid, own.executable, own.called, sizeof(own.called)))
		own.called[0] = 0;
}

const char *program_library(const char *path)
{
	return library_name(path, own.executable, own.called);
}
