/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Restartable sequences, rseq(2).  The kernel sends a thread that was interrupted in one to its
 * abort handler, whose address has a signature before it.  Moved elsewhere an instruction would not
 * be covered any more, and a changed signature is answered by SIGSEGV.
 */
#ifndef INJECT_RSEQ_H
#define INJECT_RSEQ_H

#include <gelf.h>
#include "attach/target.h"

/* Where a module lists its sequences: section __rseq_cs.  Return: its ELF address, with *@length in
 * bytes; *@length 0: it has none. */
uint64_t rseq_section(Elf *elf, uint64_t *length);

/**
 * rseq_overlaps() - do any of [@start, @end) belong to a sequence?
 * @list, @length: rseq_section() in the target's memory
 * Return: 1 yes, 0 no, or a negative errno when that cannot be read.
 */
int rseq_overlaps(struct target *t, uint64_t list, uint64_t length, uint64_t start, uint64_t end);

#endif
