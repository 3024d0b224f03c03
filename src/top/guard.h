/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A small process that puts the terminal right if this one is killed without a chance to do so. */
#ifndef TOP_GUARD_H
#define TOP_GUARD_H

#include <sys/types.h>
#include "lib/err.h"

struct guard {
	pid_t pid;
	int news; /* a pipe to it, for enum guard_news; its end means that this process has ended */
};

/* Who has the terminal: it must not be changed while a shell uses it.  At first it is given back. */
enum guard_news { GUARD_TAKEN, GUARD_GIVEN_BACK };

/**
 * guard_start() - start the process, before this one has threads and changes the terminal
 * @tty: the terminal; its present modes are those to go back to
 *
 * The type of the terminal must be known to curses already (screen_type()).
 * Return: 0, or a negative errno with @err.
 */
int guard_start(int tty, struct guard *g, struct mp_err *err);
/* Tells it, before the terminal is changed, and after it is as it was. */
void guard_tell(const struct guard *g, enum guard_news news);
/* Ends it, after the terminal was put right. */
void guard_end(struct guard *g);

#endif
