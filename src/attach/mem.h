/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All reads and writes of a target's memory: through /proc/PID/mem, and PTRACE_POKEDATA where a
 * write through that file is denied.  The file belongs to the target's user, so a caller with
 * CAP_SYS_PTRACE and no other privilege cannot open it: process_vm_readv and process_vm_writev are
 * used then, and POKEDATA for text.
 */
#ifndef ATTACH_MEM_H
#define ATTACH_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"

struct mem {
	int fd; /* -1: could not be opened */
	pid_t pid;
	pid_t tid; /* a stopped thread for PTRACE_POKEDATA; 0 while none is stopped */
};

/* Return: 0, or -errno if the memory of @pid can be accessed in neither way. */
__must_check int mem_open(struct mem *mem, pid_t pid);
void mem_close(struct mem *mem);
/* Reads exactly @len bytes.  Return: 0, or -EIO/-EFAULT if any byte is not readable. */
__must_check int mem_read(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Reads up to @len bytes.  Return: bytes read (0 possible), or -errno. */
__must_check ssize_t mem_read_some(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Writes exactly @len bytes of data to memory that is writable for the target, and reads them back
 * to verify.  Return: 0 or -errno. */
__must_check int mem_write(const struct mem *mem, uint64_t addr, const void *buf, size_t len);
/* Like mem_write() for code, also where the target has no write permission (FOLL_FORCE); the
 * instruction cache is flushed.  The target must be stopped.  Return: 0 or -errno; -ENOTSUP if the
 * write could crash the kernel (arch.patch.huge_write_crashes). */
__must_check int mem_write_text(const struct mem *mem, uint64_t addr, const void *buf, size_t len);

#endif
