/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Apart from screen.c, because macros of term.h have the names of many variables. */
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

int screen_type(struct mp_err *err)
{
	const char *type = getenv("TERM"), *move = NULL;
	int known = 0;

	if (setupterm(NULL, STDOUT_FILENO, &known) == OK)
		move = tigetstr("cup");
	if (move && move != (const char *)-1)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -ENOTTY,
		       "curses does not know the terminal type '%.100s' (TERM), or it cannot move "
		       "the cursor",
		       type ? type : "");
}
