/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/block/jit.h"

#include <stdlib.h>
#include <string.h>
#include "attach/proc/procfs.h"
#include "lib/path.h"
#include "unwind/section.h"

#define MAX_CMDLINE (64u << 10)

void jit_note_process(struct jit *jit, pid_t pid)
{
	char *line = malloc(MAX_CMDLINE);

	if (line && !proc_cmdline(pid, line, MAX_CMDLINE))
		jit->told = strstr(line, "-XX:+PreserveFramePointer");
	free(line);
}

static bool names_v8(Elf *elf)
{
	static const char name[] = "N2v88internal7Isolate";
	GElf_Shdr sh;
	Elf_Scn *scn = elf_section(elf, ".dynstr", &sh);
	Elf_Data *d = scn ? elf_rawdata(scn, NULL) : NULL;

	return d && d->d_buf && memmem(d->d_buf, d->d_size, name, sizeof(name) - 1);
}

void jit_note_file(struct jit *jit, Elf *elf, const char *path)
{
	jit->has_hotspot |= !strncmp(path_base(path), "libjvm.so", strlen("libjvm.so"));
	jit->has_v8 = jit->has_v8 || names_v8(elf);
}
