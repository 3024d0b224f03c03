/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An ELF file's bytes by their addresses. */
#ifndef UNWIND_IMAGE_H
#define UNWIND_IMAGE_H

#include <libelf.h>
#include "arch/arch.h"
#include "unwind/bytes.h"

/* Return: what the file has from address @addr to the end of its segment, at most @max bytes, in
 * @arch's byte order; empty if there is none.  It belongs to @elf. */
struct bytes image_bytes(Elf *elf, const struct arch *arch, uint64_t addr, uint64_t max);

#endif
