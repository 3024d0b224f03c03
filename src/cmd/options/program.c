/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/program.h"

#include <string.h>
#include "attach/proc/procfs.h"
#include "lib/path.h"
#include "model/names/frames.h"

static struct proc_program own;

void program_is_of(pid_t pid)
{
	proc_program_read(pid, &own);
}

const char *program_library(const char *path)
{
	return library_name(path, own.executable, own.called);
}

const char *program_file(const char *name)
{
	return strcmp(path_base(own.executable), name) != 0 ? name
							    : program_library(own.executable);
}
