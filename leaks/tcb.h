/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What glibc keeps of threads: control blocks, and the secret that it mangles pointers with. */
#ifndef LEAKS_TCB_H
#define LEAKS_TCB_H

#include <stdint.h>
#include "leaks/image.h"

/**
 * tcb_dead() - the control block of an exited thread, whose stack waits for the next one
 * @start, @end: memory without a file, in which no thread has its stack pointer
 * Return: address of its control block (struct pthread), which lies at the top of a stack; below
 * it are dead frames and variables only.  0: there is none.  *@until: where what counts of it ends,
 * before dead variables that lie above it; @end, where that is not known.
 */
uint64_t tcb_dead(struct image *img, uint64_t start, uint64_t end, uint64_t *until);

/* Return: the secret of glibc's PTR_MANGLE, 0: it has none or it was not found. */
uint64_t tcb_guard(struct image *img);
/* Return: what was mangled to @value. */
uint64_t tcb_demangle(const struct arch *arch, uint64_t value, uint64_t guard);

#endif
