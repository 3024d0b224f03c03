/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/rseq.h"

#include <errno.h>
#include "unwind/section.h"

#define MAX_BYTES (1ull << 20)
#define SIGNATURE 4u /* bytes before the abort handler */

/* struct rseq_cs, uapi linux/rseq.h: the same on 32-bit architectures */
struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

uint64_t rseq_section(Elf *elf, uint64_t *length)
{
	GElf_Shdr sh;

	*length = 0;
	if (!elf_section(elf, "__rseq_cs", &sh) || !(sh.sh_flags & SHF_ALLOC))
		return 0;
	*length = sh.sh_size;
	return sh.sh_addr;
}

int rseq_overlaps(struct target *t, uint64_t list, uint64_t length, uint64_t start, uint64_t end)
{
	struct sequence s;

	if (length > MAX_BYTES)
		return -E2BIG;
	for (uint64_t at = 0; at + sizeof(s) <= length; at += sizeof(s)) {
		int ret = mem_read(&t->mem, list + at, &s, sizeof(s));

		if (ret)
			return ret;
		if (!s.length && !s.abort) /* padding */
			continue;
		if ((start < s.start + s.length && s.start < end) ||
		    (start <= s.abort && s.abort - SIGNATURE < end))
			return 1;
	}
	return 0;
}
