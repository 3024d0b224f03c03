/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/actions.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/human.h"
#include "lib/printable.h"
#include "model/filter/pattern.h"
#include "model/model.h"
#include "top/draw.h"
#include "top/feed.h"
#include "top/save.h"
#include "top/state.h"

#define MARK "top" /* the usual name */

/*
 * Before a request to the recorder, which waits for an answer.  If its disk is stalled, that can take
 * long: the signals that end the program are let through (guard.h puts the terminal right).  Return:
 * the signal mask to return to.
 */
static sigset_t begin_request(struct top *t)
{
	sigset_t set, before;

	top_say(t, "asking the recorder ... (Ctrl-C quits)");
	draw(t);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_UNBLOCK, &set, &before);
	return before;
}

/* Tells how it ended.  Return: whether it worked. */
static bool worked(struct top *t, int ret, const struct mp_err *err)
{
	if (ret)
		top_say(t, "%s", err->what);
	return !ret;
}

/* After a request: as worked(). */
static bool end_request(struct top *t, const sigset_t *before, int ret, const struct mp_err *err)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
	*t->message = 0;
	return worked(t, ret, err);
}

static bool has_ended(struct top *t)
{
	if (*t->ended)
		top_say(t, "%s", t->ended);
	return *t->ended;
}

void act_freeze(struct top *t)
{
	t->frozen = !t->frozen;
	top_say(t, t->frozen ? "frozen: no looks are taken; the recording continues"
			     : "looks are taken again");
}

void act_pause(struct top *t)
{
	const bool pause = !feed_state(t->feed)->paused;
	struct mp_err err = {0};
	sigset_t before;
	int ret;

	if (has_ended(t))
		return;
	before = begin_request(t);
	ret = feed_pause(t->feed, pause, &err);
	if (end_request(t, &before, ret, &err))
		top_say(t, pause ? "paused: new blocks are left out; p resumes" : "resumed");
}

void act_sample(struct top *t)
{
	static const uint32_t steps[] = {0, 8, 10, 12};
	const struct feed_state *fs = feed_state(t->feed);
	const size_t n = sizeof(steps) / sizeof(steps[0]);
	struct mp_err err = {0};
	sigset_t before;
	size_t i = 0;
	int ret;

	if (has_ended(t))
		return;
	if (!fs->can_thin) {
		top_say(t, "this recording cannot be sampled while it runs (doc/thinning.md)");
		return;
	}
	while (i < n && steps[i] <= fs->least)
		i++;
	before = begin_request(t);
	ret = feed_thin(t->feed, steps[i % n], &err);
	if (!end_request(t, &before, ret, &err))
		return;
	if (i % n)
		top_say(t, "of allocations of one kind at most %s a second are recorded, marked ~",
			thousands(feed_kept(steps[i % n])));
	else
		top_say(t, "new allocations are exact again, as long as the recorder can follow");
}

void act_ask(struct top *t, enum prompt_for what)
{
	char text[PROMPT_SIZE];

	switch (what) {
	case PROMPT_FILTER:
		prompt_begin(&t->prompt, PROMPT_FILTER, t->filter_text);
		break;
	case PROMPT_MARK:
		if (!has_ended(t))
			prompt_begin(&t->prompt, PROMPT_MARK, MARK);
		break;
	default:
		snprintf(text, sizeof(text), "memprof-%d-top.txt", t->o->pid);
		prompt_begin(&t->prompt, PROMPT_REPORT, text);
	}
}

int act_filter(struct top *t, const char *text)
{
	struct pattern *p = NULL;
	struct mp_err err = {0};
	int ret = *text ? pattern_new("filter", text, &p, &err) : 0;

	if (!worked(t, ret, &err))
		return ret;
	pattern_free(t->filter);
	t->filter = p;
	t->view.filter = p;
	snprintf(t->filter_text, sizeof(t->filter_text), "%s", text);
	t->cursor.chosen = false;
	return 0;
}

static void mark(struct top *t, const char *name)
{
	struct mp_err err = {0};
	sigset_t before;
	int ret;

	if (has_ended(t))
		return;
	before = begin_request(t);
	ret = feed_mark(t->feed, *name ? name : MARK, &err);
	if (!end_request(t, &before, ret, &err))
		return;
	if (past_mark(&t->past, feed_model(t->feed)))
		top_say(t, "out of memory");
	else
		top_say(t, "marked: SINCE MARK counts from now");
	top_rebuild(t);
}

static void write_to(struct top *t, const char *path)
{
	struct mp_err err = {0};

	if (worked(t, save_report(feed_model(t->feed), path, &err), &err))
		top_say(t, "wrote %s", printable(path));
}

/* Asks again if the file exists. */
static void report(struct top *t, const char *path)
{
	struct stat st;

	if (!*path)
		top_say(t, "nothing was written");
	else if (!stat(path, &st) && S_ISREG(st.st_mode))
		prompt_begin(&t->prompt, PROMPT_REPLACE, path);
	else
		write_to(t, path);
}

void act_on_prompt(struct top *t)
{
	const struct prompt asked = t->prompt;

	t->prompt.what = PROMPT_NONE;
	switch (asked.what) {
	case PROMPT_FILTER:
		if (!act_filter(t, asked.text))
			top_rebuild(t);
		break;
	case PROMPT_MARK:
		mark(t, asked.text);
		break;
	case PROMPT_REPORT:
		report(t, asked.text);
		break;
	default:
		write_to(t, asked.text);
	}
}
