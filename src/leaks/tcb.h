/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* glibc's data about threads: control blocks, and the secret with which it mangles pointers. */
#ifndef LEAKS_TCB_H
#define LEAKS_TCB_H

#include <stdint.h>
#include "snapshot/image.h"

/**
 * tcb_dead() - find the control block of an exited thread, whose stack glibc keeps for the next one
 * @start, @end: memory without a file, in which no thread has its stack pointer
 * @until: set to the end of the data to scan, before dead variables that lie above it; @end if that
 * is not known
 * Return: address of the control block (struct pthread), which is at the top of a stack, with only
 * dead frames and variables below it; 0: there is none.
 */
uint64_t tcb_dead(struct image *img, uint64_t start, uint64_t end, uint64_t *until);

/* Return: the secret of glibc's PTR_MANGLE; 0: there is none, or it was not found. */
uint64_t tcb_guard(struct image *img);
/* Return: the pointer that was mangled to @value. */
uint64_t tcb_demangle(const struct arch *arch, uint64_t value, uint64_t guard);

#endif
