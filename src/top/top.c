/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "control/requests.h"
#include "lib/deadline.h"
#include "lib/printable.h"
#include "model/filter/pattern.h"
#include "model/model.h"
#include "top/actions.h"
#include "top/draw.h"
#include "top/feed.h"
#include "top/guard.h"
#include "top/keys.h"
#include "top/screen.h"
#include "top/state.h"

#define MS	   1000000u
#define WAITING_MS 1000 /* the screen shows each second how long it waits */
#define MOST_EMPTY_POLLS                                                                           \
	50 /* of a terminal that says that it has input, but has none: it is gone */

/* The descriptors and times of the main loop. */
struct loop {
	int signals;
	struct guard guard;
	uint64_t next_ns; /* when to ask for the next one */
	uint32_t empty;	  /* polls of the terminal without a key, one after the other */
};

int top_check_terminal(struct mp_err *err)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return mp_fail(err, MP_EXIT_USAGE, -ENOTTY,
			       "it needs a terminal as its input and output; in scripts use "
			       "memprof status and memprof report");
	return screen_type(err);
}

static void take_look(struct top *t)
{
	const uint64_t thinned = feed_model(t->feed)->facts.losses.thinned;

	t->thinned_looks = thinned > t->thinned ? 0 : t->thinned_looks + 1;
	t->thinned = thinned;
	if (past_add(&t->past, feed_model(t->feed)))
		top_say(t, "out of memory");
	top_rebuild(t);
}

/* Notes why there are no more looks. */
static void note_end(struct top *t, const struct mp_err *err)
{
	struct ss_control c;
	struct ss_journal j;

	if (!proc_start_time(t->o->pid))
		snprintf(t->ended, sizeof(t->ended), "process %d has ended; q quits", t->o->pid);
	else if (!session_peek(t->o->pid, &c, &j))
		snprintf(t->ended, sizeof(t->ended), "the recording has ended; q quits");
	else if (!recorder_lives(&j))
		snprintf(
		    t->ended, sizeof(t->ended),
		    "the recorder was killed; q quits; memprof detach -p %d restores the process",
		    t->o->pid);
	else
		snprintf(t->ended, sizeof(t->ended), "%.200s; q quits", printable(err->what));
}

/* Takes a look that is ready. */
static void feed_ready(struct top *t)
{
	struct mp_err err = {0};
	int ret = feed_take(t->feed, &err);

	if (ret > 0)
		take_look(t);
	if (ret < 0)
		note_end(t, &err);
	t->asked_ns = 0;
}

/* The signals that the loop reads from a descriptor. */
static sigset_t signals_of_loop(void)
{
	static const int signals[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	return set;
}

static void suspend(const struct loop *l)
{
	guard_tell(&l->guard, GUARD_GIVEN_BACK);
	screen_suspend();
	guard_tell(&l->guard, GUARD_TAKEN);
}

static void take_signals(struct top *t, const struct loop *l)
{
	struct signalfd_siginfo si;

	while (read(l->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGWINCH)
			screen_resize();
		else if (si.ssi_signo == SIGTSTP)
			suspend(l);
		else if (si.ssi_signo == SIGCONT)
			screen_resume();
		else
			t->quit = true;
	}
}

static void take_keys(struct top *t, struct loop *l, short events)
{
	struct screen_key k;
	bool any = false;

	while (!t->quit && screen_key(&k)) {
		keys_press(t, &k);
		any = true;
	}
	l->empty = any ? 0 : l->empty + 1;
	if ((!any && !(events & POLLIN)) || l->empty > MOST_EMPTY_POLLS)
		t->quit = true;
}

/* Return: milliseconds until the next look is to be asked for, or until the screen shows for how long it
 * has been waited for; -1: no look is. */
static int time_left(const struct top *t, const struct loop *l)
{
	uint64_t now = mono_ns();

	if (t->frozen || *t->ended)
		return -1;
	if (t->asked_ns)
		return WAITING_MS;
	return l->next_ns <= now ? 0 : (int)((l->next_ns - now + MS - 1) / MS);
}

static void ask_if_due(struct top *t, struct loop *l)
{
	if (time_left(t, l) != 0)
		return;
	l->next_ns = mono_ns() + t->o->delay_ms * MS;
	t->asked_ns = mono_ns();
	feed_ask(t->feed);
}

static void run_display(struct top *t, struct loop *l)
{
	enum { SIGNALS, KEYS, FEED, N };

	while (!t->quit) {
		struct pollfd p[N] = {{.fd = l->signals, .events = POLLIN},
				      {.fd = STDIN_FILENO, .events = POLLIN},
				      {.fd = feed_fd(t->feed), .events = POLLIN}};

		draw(t);
		if (t->frozen || *t->ended)
			p[FEED].fd = -1;
		if (poll(p, N, time_left(t, l)) < 0 && errno != EINTR)
			return;
		if (p[SIGNALS].revents)
			take_signals(t, l);
		if (p[KEYS].revents)
			take_keys(t, l, p[KEYS].revents);
		if (p[FEED].revents)
			feed_ready(t);
		ask_if_due(t, l);
	}
}

/* The name by which the user knows the program. */
static void name_process(struct top *t)
{
	struct proc_program p;
	struct proc_status st;

	proc_program_read(t->o->pid, &p);
	if (*p.called)
		snprintf(t->name, sizeof(t->name), "%s", printable(p.called));
	else if (!proc_status_read(t->o->pid, 0, &st))
		snprintf(t->name, sizeof(t->name), "%s", printable(st.name));
}

static int watch(struct top *t, struct loop *l, struct mp_err *err)
{
	int ret;

	guard_tell(&l->guard, GUARD_TAKEN);
	ret = screen_begin(t->o->colours, err);
	if (ret)
		return ret;
	take_look(t);
	if (t->o->filter && !act_filter(t, t->o->filter))
		top_rebuild(t);
	l->next_ns = mono_ns() + t->o->delay_ms * MS;
	run_display(t, l);
	screen_end();
	guard_tell(&l->guard, GUARD_GIVEN_BACK);
	return 0;
}

/* Signals are handled by the loop from the first look on.  Before it, they end the program. */
static int watch_signals(struct top *t, struct loop *l, struct mp_err *err)
{
	sigset_t set = signals_of_loop(), before;
	int ret;

	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signals < 0)
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot wait for signals: %s",
			       strerror(errno));
	pthread_sigmask(SIG_BLOCK, &set, &before);
	ret = watch(t, l, err);
	close(l->signals);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int top_run(const struct top_options *o, struct mp_err *err)
{
	struct top t = {.o = o, .view = {.by = o->by, .sort = o->sort}};
	struct loop l = {.signals = -1};
	int ret = guard_start(STDIN_FILENO, &l.guard, err);

	if (ret)
		return ret;
	name_process(&t);
	ret = feed_open(o->pid, &t.feed, err);
	if (!ret)
		ret = feed_take(t.feed, err);
	if (ret >= 0) {
		feed_model(t.feed)->shown.full = o->full;
		ret = watch_signals(&t, &l, err);
	}
	feed_close(t.feed);
	guard_end(&l.guard);
	table_free(&t.table);
	past_free(&t.past);
	pattern_free(t.filter);
	return ret;
}
