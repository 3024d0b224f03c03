/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A line of text that the user types. */
#ifndef TOP_PROMPT_H
#define TOP_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

#define PROMPT_SIZE 512 /* bytes of the text */

enum prompt_for { PROMPT_NONE, PROMPT_FILTER, PROMPT_MARK, PROMPT_REPORT, PROMPT_REPLACE };

struct prompt {
	enum prompt_for what; /* PROMPT_NONE: nothing is asked */
	char text[PROMPT_SIZE];
};

/* Asks; @text: what is there at first. */
void prompt_begin(struct prompt *p, enum prompt_for what, const char *text);
/* Adds a character at the end, if there is room and it is none that controls the terminal. */
void prompt_add(struct prompt *p, uint32_t character);
/* Removes the last character. */
void prompt_backspace(struct prompt *p);

#endif
