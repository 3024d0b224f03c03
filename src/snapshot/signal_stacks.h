/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The alternate signal stacks of the threads of a snapshot (attach/signal_stack.h). */
#ifndef SNAPSHOT_SIGNAL_STACKS_H
#define SNAPSHOT_SIGNAL_STACKS_H

#include "attach/target.h"
#include "snapshot/image.h"

struct signal_stack {
	pid_t tid;
	uint64_t start;
};
struct signal_stacks {
	VEC(struct signal_stack) list;
	uint32_t unknown; /* threads that ended, or could not be asked */
};

/**
 * signal_stacks_ask() - ask the threads of @img for their signal stacks
 * @t: stopped (a snapshot in place), or running: then each thread is stopped alone, for about 0.3 ms
 * @found: to be freed with signal_stacks_free(), also after an error
 * Gives up after 5 s, and if memprof is about to end (snapshot/hand.h).
 * Return: 0 or -ENOMEM.
 */
int signal_stacks_ask(struct signal_stacks *found, struct target *t, const struct image *img);
void signal_stacks_free(struct signal_stacks *found);

#endif
