/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Restartable sequences, rseq(2).  The kernel sends a thread that was interrupted in a sequence to
 * its abort handler, whose address is preceded by a signature.  An instruction that is relocated
 * would no longer be covered by the sequence, and if the signature is changed the kernel sends
 * SIGSEGV.
 */
#ifndef INJECT_HOOKS_RSEQ_H
#define INJECT_HOOKS_RSEQ_H

#include <gelf.h>
#include "attach/target.h"

/* Finds a module's list of sequences, section __rseq_cs.  @length: set to its bytes, 0 if there is
 * none.  Return: its ELF address. */
uint64_t rseq_section(Elf *elf, uint64_t *length);

/**
 * rseq_overlaps() - does any byte of [@start, @end) belong to a sequence?
 * @list, @length: rseq_section() in the target's memory
 * Return: 1 yes, 0 no, or a negative errno if the list cannot be read.
 */
int rseq_overlaps(struct target *t, uint64_t list, uint64_t length, uint64_t start, uint64_t end);

#endif
