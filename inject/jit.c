/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/jit.h"

#include <stdlib.h>
#include <string.h>
#include "attach/procfs.h"
#include "unwind/section.h"

#define MAX_CMDLINE (64u << 10)

bool jit_is_v8(Elf *elf)
{
	static const char name[] = "N2v88internal7Isolate";
	GElf_Shdr sh;
	Elf_Scn *scn = elf_section(elf, ".dynstr", &sh);
	Elf_Data *d = scn ? elf_rawdata(scn, NULL) : NULL;

	return d && d->d_buf && memmem(d->d_buf, d->d_size, name, sizeof(name) - 1);
}

bool jit_was_told(pid_t pid)
{
	char *line = malloc(MAX_CMDLINE);
	bool told = line && !proc_cmdline(pid, line, MAX_CMDLINE) &&
		    strstr(line, "-XX:+PreserveFramePointer");

	free(line);
	return told;
}
