/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include "top/screen.h"
#include "top/state.h"

static const char *const lines[] = {
    "up, down, j, k       select a row; PgUp, PgDn, Home, End, g, G",
    "Enter, Right         open: a place: its stacks; a stack: its frames",
    "Left, Esc            back",
    "1 2 3 4 5, Tab       rows are: lines, functions, libraries, threads, stacks",
    "< >                  sort by another column;  r: the other way round",
    "/                    only rows whose function, source or library matches",
    "space                freeze: no looks are taken, the recording continues",
    "m                    mark, in the recording, too: SINCE MARK counts from now",
    "p                    pause: leave out new blocks; again: resume",
    "s                    record 32,768, 8,192, 2,048 a second of one kind, then all",
    "w                    write a report of what is seen now: text, or JSON (.json)",
    "a                    of a stack: every frame, or those of libraries as one",
    "Ctrl-L               draw the screen again;  Ctrl-Z: suspend",
    "q                    quit",
    "",
    "LIVE        bytes allocated since the recording began, and not freed",
    "BLOCKS      their number",
    "GROWTH/s    change of the live bytes, over the last looks",
    "SINCE MARK  change of the live bytes since the mark",
    "ALLOC/s     allocations;  BYTES/s: what they requested",
    "TEMP        share of them that was freed before the thread's next allocation",
    "+-          standard error of an estimate, which has ~ before it",
};
#define LINES_OF_HELP (sizeof(lines) / sizeof(lines[0]))

void draw_help(struct top *t, struct draw_area a)
{
	const uint32_t rows = a.to - a.from - 1;
	const uint32_t most = LINES_OF_HELP > rows ? (uint32_t)LINES_OF_HELP - rows : 0;

	if (t->help_first > most)
		t->help_first = most;
	screen_put(a.from, 0, screen_width(), SCREEN_HEADER, "memprof top: keys and columns");
	for (uint32_t i = 0; i < rows && t->help_first + i < LINES_OF_HELP; i++)
		screen_put(a.from + 1 + i, 0, screen_width(), SCREEN_PLAIN,
			   lines[t->help_first + i]);
}
