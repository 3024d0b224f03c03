/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The only reader and writer of a target's memory (/proc/PID/mem; POKEDATA where that is denied).
 */
#ifndef ATTACH_MEM_H
#define ATTACH_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mem {
	int fd;
	pid_t tid; /* a stopped thread, for the POKEDATA way; 0 while none is stopped */
};

/* Opens /proc/@pid/mem read-write.  Return: 0 or -errno. */
int mem_open(struct mem *mem, pid_t pid);
void mem_close(struct mem *mem);
/* Reads exactly @len bytes.  Return: 0, or -EIO/-EFAULT if any byte is not readable. */
int mem_read(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Reads up to @len bytes.  Return: bytes read (0 possible), or -errno. */
ssize_t mem_read_some(const struct mem *mem, uint64_t addr, void *buf, size_t len);
/* Writes exactly @len bytes, also to text (FOLL_FORCE), and reads them back.  Return: 0 or -errno.
 */
int mem_write(const struct mem *mem, uint64_t addr, const void *buf, size_t len);

#endif
