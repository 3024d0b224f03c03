/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The terminal: begins and ends curses, and puts texts on the screen. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

/* Never told apart by colour alone. */
enum screen_style {
	SCREEN_PLAIN,
	SCREEN_TITLE,	 /* bold */
	SCREEN_HEADER,	 /* reverse */
	SCREEN_SORTED,	 /* in the header: also underlined and bold */
	SCREEN_SELECTED, /* reverse */
	SCREEN_SITE,	 /* bold */
	SCREEN_WARNING,	 /* bold */
	SCREEN_BAD,	 /* bold */
	SCREEN_GROWS,	 /* numbers, which have a sign */
	SCREEN_SHRINKS,
	SCREEN_STYLES
};

/* Is the terminal usable: does curses know its type, and can it move the cursor?  Return: 0 or a
 * negative errno with @err (MP_EXIT_USAGE). */
int screen_type(struct mp_err *err);

/* Return: 0, to be ended by screen_end(), or a negative errno with @err. */
int screen_begin(bool colours, struct mp_err *err);
void screen_end(void);
/* Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal again when it
 * continues. */
void screen_suspend(void);
/* Takes the terminal again after another program may have used it. */
void screen_resume(void);
/* Adapts to the terminal's present size. */
void screen_resize(void);
/* Draws everything again with the next screen_show(). */
void screen_forget(void);

uint32_t screen_width(void);
uint32_t screen_height(void);

/* Clears what is to be shown. */
void screen_clear(void);
/* Puts @text at row @y and column @x, in @width columns: it is cut, and followed by blanks. */
void screen_put(uint32_t y, uint32_t x, uint32_t width, enum screen_style style, const char *text);
/* As screen_put(), with the blanks before the text. */
void screen_put_right(uint32_t y, uint32_t x, uint32_t width, enum screen_style style,
		      const char *text);
/* Shows what was put since screen_clear().  @cursor: column of the cursor in the last row, or -1:
 * it is hidden. */
void screen_show(int cursor);

/* A key: a character, or a KEY_ constant of curses. */
struct screen_key {
	bool special;
	uint32_t code;
};
/* Return: false if there is none at the moment. */
bool screen_key(struct screen_key *k);

#endif
