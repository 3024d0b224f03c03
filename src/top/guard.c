/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/guard.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#define TERMINAL 3 /* descriptors in the process of the guard */
#define PIPE	 4

static void ignore_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_IGN); /* fails for some */
}

/* What puts the terminal right.  It is made beforehand and written at once, so that it is there before
 * the shell writes that memprof was killed. */
static char restoring[1024];
static size_t length;

static int append_byte(int c)
{
	if (length < sizeof(restoring))
		restoring[length++] = (char)c;
	return c;
}

static void append_capability(const char *capability)
{
	const char *text = tigetstr(capability);

	if (text && text != (const char *)-1)
		tputs(text, 1, append_byte);
}

static void prepare(void)
{
	append_capability("rmkx");  /* keypad_local */
	append_capability("sgr0");  /* exit_attribute_mode */
	append_capability("cnorm"); /* cursor_normal */
	append_capability("rmcup"); /* exit_ca_mode */
}

/* Leaves only the two descriptors open. */
static void keep_descriptors(int tty, int pipe_end)
{
	int t = fcntl(tty, F_DUPFD, PIPE + 1), p = fcntl(pipe_end, F_DUPFD, PIPE + 1);

	dup2(t, TERMINAL);
	dup2(p, PIPE);
	close_range(0, TERMINAL - 1, 0);
	close_range(PIPE + 1, ~0u, 0);
}

/* Waits until the other process has ended, or says that it is over.  Return: whether it was killed
 * while it had the terminal. */
static bool was_killed(void)
{
	enum guard_news news = GUARD_GIVEN_BACK;
	char byte;

	for (;;) {
		ssize_t n = read(PIPE, &byte, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return news == GUARD_TAKEN;
		news = (enum guard_news)byte;
	}
}

static void guard(int tty, int pipe_end, const struct termios *before)
{
	ignore_signals();
	/* In a session of its own it can set the modes of the terminal while others use that. */
	setsid();
	keep_descriptors(tty, pipe_end);
	prepare();
	if (was_killed()) {
		(void)!write(TERMINAL, restoring, length);
		tcsetattr(TERMINAL, TCSANOW, before);
	}
	_exit(0);
}

int guard_start(int tty, struct guard *g, struct mp_err *err)
{
	struct termios before;
	int p[2];

	*g = (struct guard){.news = -1};
	if (tcgetattr(tty, &before))
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot read the terminal's modes: %s",
			       strerror(errno));
	if (pipe2(p, O_CLOEXEC))
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make a pipe: %s",
			       strerror(errno));
	g->pid = fork();
	if (g->pid == 0) {
		close(p[1]);
		guard(tty, p[0], &before);
	}
	close(p[0]);
	g->news = p[1];
	if (g->pid < 0) {
		close(p[1]);
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot fork: %s", strerror(errno));
	}
	return 0;
}

void guard_tell(const struct guard *g, enum guard_news news)
{
	char byte = (char)news;

	if (g->pid > 0)
		(void)!write(g->news, &byte, 1);
}

void guard_end(struct guard *g)
{
	if (g->pid <= 0)
		return;
	guard_tell(g, GUARD_GIVEN_BACK);
	close(g->news);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*g = (struct guard){.news = -1};
}
