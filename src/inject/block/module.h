/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the file of a mapping says about it: the rest of its module entry. */
#ifndef INJECT_BLOCK_MODULE_H
#define INJECT_BLOCK_MODULE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/proc/maps.h"
#include "formats/file.h"
#include "lib/check.h"

/* Fills @bias: address in the mapping minus the ELF virtual address.  Return: 0; -EINVAL if @elf is damaged,
 * -ENOENT if no executable segment of it is mapped there. */
__must_check int module_bias(Elf *elf, const struct map *map, uint64_t *bias);

/* Fills the bias and the build id of @m from @elf, which can be NULL.  Return: as module_bias(); -EINVAL also if it is no ELF
 * file. */
__must_check int module_read(Elf *elf, const struct map *map, struct mp_module *m);

/**
 * module_describe() - fill the module entry of a mapping of code
 * @pid: the process
 * @map: of a file; it can be unmapped already
 * @since_ns: when it was mapped (CLOCK_MONOTONIC)
 * @replaced: other code is known to be mapped there now
 * @m: filled; its path is that of @map
 *
 * If it is no ELF file, @m has no build id and the bias 0.  If the file cannot be read any more, or can have changed since it was
 * mapped, @m has no build id, and its bias is a guess: that the segment has the address that it has in the file.
 * Return: whether the file is still there.
 */
bool module_describe(pid_t pid, const struct map *map, uint64_t since_ns, bool replaced,
		     struct mp_module *m);

#endif
