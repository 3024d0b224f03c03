/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The only reader and writer of a target's memory: /proc/PID/mem, POKEDATA where writing by it is
 * denied.  Its file belongs to the target's user: who has CAP_SYS_PTRACE and nothing else goes by
 * process_vm_readv and process_vm_writev, and POKEDATA for text.
 */
#ifndef ATTACH_MEM_H
#define ATTACH_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"

struct mem {
	int fd; /* -1: not permitted */
	pid_t pid;
	pid_t tid; /* a stopped thread, for the POKEDATA way; 0 while none is stopped */
};

/* Return: 0, or -errno if the memory of @pid can be had neither way. */
__must_check int mem_open(struct mem *mem, pid_t pid);
void mem_close(struct mem *mem);
/* Reads exactly @len bytes.  Return: 0, or -EIO/-EFAULT if any byte is not readable. */
__must_check int mem_read(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Reads up to @len bytes.  Return: bytes read (0 possible), or -errno. */
__must_check ssize_t mem_read_some(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Writes exactly @len bytes of data where the target could write itself, and reads them back.
 * Return: 0 or -errno. */
__must_check int mem_write(const struct mem *mem, uint64_t addr, const void *buf, size_t len);
/* The same of code, also where the target cannot write (FOLL_FORCE); the instruction cache is
 * flushed.  The target is stopped.  Return: 0 or -errno; -ENOTSUP where the write could crash the
 * kernel (struct arch, huge_write_crashes). */
__must_check int mem_write_text(const struct mem *mem, uint64_t addr, const void *buf, size_t len);

#endif
