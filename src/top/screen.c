/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "top/fit.h"

#define ESCAPE_MS 25 /* a longer pause after Escape means the key itself */
#define WIDEST	  1024

static SCREEN *screen;
static attr_t attributes[SCREEN_STYLES];
static short pairs[SCREEN_STYLES];

static void set_styles(bool colours)
{
	static const struct {
		attr_t attribute;
		short colour;
	} style[SCREEN_STYLES] = {
	    [SCREEN_PLAIN] = {A_NORMAL, -1},
	    [SCREEN_TITLE] = {A_BOLD, COLOR_CYAN},
	    [SCREEN_HEADER] = {A_REVERSE, -1},
	    [SCREEN_SORTED] = {A_REVERSE | A_BOLD | A_UNDERLINE, -1},
	    [SCREEN_SELECTED] = {A_REVERSE, -1},
	    [SCREEN_SITE] = {A_BOLD, -1},
	    [SCREEN_WARNING] = {A_BOLD, COLOR_YELLOW},
	    [SCREEN_BAD] = {A_BOLD, COLOR_RED},
	    [SCREEN_GROWS] = {A_NORMAL, COLOR_YELLOW},
	    [SCREEN_SHRINKS] = {A_NORMAL, COLOR_GREEN},
	};
	bool coloured = colours && has_colors() && start_color() == OK;

	if (coloured)
		use_default_colors();
	for (int i = 0; i < SCREEN_STYLES; i++) {
		attributes[i] = style[i].attribute;
		pairs[i] = coloured && style[i].colour >= 0 ? (short)(i + 1) : 0;
		if (pairs[i])
			init_pair(pairs[i], style[i].colour, -1);
	}
}

int screen_begin(bool colours, struct mp_err *err)
{
	setlocale(LC_CTYPE, "");
	/* Unlike initscr(), newterm() does not end the program. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return mp_fail(err, MP_EXIT_USAGE, -ENOTTY, "curses cannot use this terminal");
	set_term(screen);
	/* The actions that curses set; the caller decides when these signals arrive. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	set_styles(colours);
	screen_resize();
	return 0;
}

void screen_end(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void screen_suspend(void)
{
	sigset_t stop, before;

	def_prog_mode();
	endwin();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	/* It stops here. */
	pthread_sigmask(SIG_UNBLOCK, &stop, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	screen_resume();
}

void screen_resume(void)
{
	reset_prog_mode();
	screen_resize();
	screen_forget();
	refresh();
}

void screen_resize(void)
{
	struct winsize w = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_row || !w.ws_col)
		return;
	if (is_term_resized(w.ws_row, w.ws_col))
		resizeterm(w.ws_row, w.ws_col);
}

void screen_forget(void)
{
	clearok(curscr, TRUE);
}

uint32_t screen_width(void)
{
	int columns = getmaxx(stdscr);

	return columns < 1 ? 1 : columns > WIDEST ? WIDEST : (uint32_t)columns;
}

uint32_t screen_height(void)
{
	int rows = getmaxy(stdscr);

	return rows < 1 ? 1 : (uint32_t)rows;
}

void screen_clear(void)
{
	erase();
}

static void put_cell(uint32_t y, uint32_t x, uint32_t width, enum screen_style style,
		     const char *text, bool right)
{
	wchar_t wide[WIDEST + 1];
	uint32_t columns, blanks;

	if (y >= screen_height() || x >= screen_width())
		return;
	if (width > screen_width() - x)
		width = screen_width() - x;
	columns = fit_wide(text, width, wide, WIDEST + 1);
	blanks = width - columns;
	attr_set(attributes[style], pairs[style], NULL);
	move((int)y, (int)x);
	if (right)
		printw("%*s", (int)blanks, "");
	addwstr(wide);
	if (!right)
		printw("%*s", (int)blanks, "");
	attr_set(A_NORMAL, 0, NULL);
}

void screen_put(uint32_t y, uint32_t x, uint32_t width, enum screen_style style, const char *text)
{
	put_cell(y, x, width, style, text, false);
}

void screen_put_right(uint32_t y, uint32_t x, uint32_t width, enum screen_style style,
		      const char *text)
{
	put_cell(y, x, width, style, text, true);
}

void screen_show(int cursor)
{
	curs_set(cursor >= 0);
	if (cursor >= 0)
		move(getmaxy(stdscr) - 1, cursor);
	refresh();
}

bool screen_key(struct screen_key *k)
{
	wint_t c = 0;

	for (;;) {
		int kind = get_wch(&c);

		if (kind == ERR)
			return false;
		/* The size is asked for when the signal arrives. */
		if (kind == KEY_CODE_YES && c == KEY_RESIZE)
			continue;
		*k = (struct screen_key){kind == KEY_CODE_YES, (uint32_t)c};
		return true;
	}
}
