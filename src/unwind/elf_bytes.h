/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Access to the bytes of an ELF file by address. */
#ifndef UNWIND_ELF_BYTES_H
#define UNWIND_ELF_BYTES_H

#include <libelf.h>
#include "arch/arch.h"
#include "unwind/bytes.h"

/* Return: the file's bytes from address @addr to the end of its segment, at most @max bytes, in
 * @arch's byte order; empty if the file has none there.  The bytes belong to @elf. */
struct bytes elf_bytes(Elf *elf, const struct arch *arch, uint64_t addr, uint64_t max);

#endif
