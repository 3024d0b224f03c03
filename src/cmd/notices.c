/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/notices.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/summary.h"
#include "lib/human.h"
#include "lib/printable.h"

#define MINUTE_NS 60000000000u

struct printed {
	bool in_background;
	uint64_t minutes; /* of the last progress line that was not for a terminal */
};

static void message(void *ctx, const char *line)
{
	(void)ctx;
	fprintf(stderr, "memprof: %s\n", line);
}

static void error(void *ctx, const struct mp_err *err)
{
	(void)ctx;
	complain(err);
}

static void begun(void *ctx, const struct recording_begun *b)
{
	(void)ctx;
	if (b->page_faults)
		fprintf(stderr,
			"memprof: recording page faults of process %d to %s; Ctrl-C ends it\n",
			b->pid, printable(b->path));
	else
		fprintf(stderr,
			"memprof: recording process %d (%s; %s hooked) to %s; Ctrl-C ends it\n",
			b->pid, printable(b->allocators), counted(b->hooks, "function"),
			printable(b->path));
}

static void started(void *ctx)
{
	const struct printed *printed = ctx;

	/* The process that started memprof might wait for the end of its output. */
	if (printed->in_background)
		dup2(STDOUT_FILENO, STDERR_FILENO);
}

/* On a terminal, overwrites one line, cut to the width: the part of a wrapped line would not be
 * overwritten. */
static void put_line(const char *line)
{
	struct winsize w = {0};

	if (!isatty(STDERR_FILENO))
		fprintf(stderr, "%s\n", line);
	else if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || !w.ws_col)
		fprintf(stderr, "\r\033[K%s", line);
	else
		fprintf(stderr, "\r\033[K%.*s", w.ws_col - 1, line);
	fflush(stderr);
}

/* Adds the present cost and rate of a recording with a budget. */
static void add_cost(char *line, size_t size, const struct recorder_cost *c)
{
	size_t n = strlen(line);
	const char *part = human_part(c->ppm);

	if (c->level)
		snprintf(line + n, size - n, ", cost %s, one per %s", part,
			 human(1ull << c->level));
	else
		snprintf(line + n, size - n, ", cost %s, every allocation", part);
}

static void progress(void *ctx, const struct recorder_progress *p, bool page_faults)
{
	const char *lost = p->lost ? thousands(p->lost) : "nothing";
	double seconds = (double)p->duration_ns / 1e9;
	struct printed *printed = ctx;
	char line[256];

	if (!isatty(STDERR_FILENO)) {
		if (p->duration_ns / MINUTE_NS <= printed->minutes)
			return;
		printed->minutes = p->duration_ns / MINUTE_NS;
	}
	if (page_faults)
		snprintf(line, sizeof(line), "%5.1fs  %s of %s, lost %s, file %s", seconds,
			 counted(p->allocs, "page fault"), human(p->allocated_bytes), lost,
			 human(p->file_bytes));
	else
		snprintf(line, sizeof(line), "%5.1fs  %s, lost %s, %s live in %s, peak %s, file %s",
			 seconds, counted(p->events, "event"), lost, human(p->live_bytes),
			 counted(p->live_blocks, "block"), human(p->peak_live_bytes),
			 human(p->file_bytes));
	if (p->cost.target_ns)
		add_cost(line, sizeof(line), &p->cost);
	put_line(line);
}

static void progress_over(void *ctx)
{
	(void)ctx;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

static void ended(void *ctx, const struct summary *s)
{
	(void)ctx;
	summary_print(s);
}

static void embedded(void *ctx, const struct embedding *e)
{
	(void)ctx;
	printf("binaries embedded: %s (%s)\n", thousands(e->files), human(e->bytes));
	if (e->left_out[0])
		fprintf(stderr, "memprof: not embedded: %s\n", printable(e->left_out));
}

void tell_restored(uint32_t n)
{
	if (n)
		printf("restored %u process%s forked from it\n", n,
		       n == 1 ? " that was" : "es that were");
}

static void restored(void *ctx, uint32_t n, bool unfollowed)
{
	(void)ctx;
	if (unfollowed)
		printf("restored %u forked process%s not followed\n", n,
		       n == 1 ? " that was" : "es that were");
	else
		tell_restored(n);
}

static void followed(void *ctx, const struct children *c, bool page_faults)
{
	const char *event = page_faults ? "page fault" : "allocation";
	uint64_t refused = 0;

	(void)ctx;
	vec_for_each (&c->refused, r)
		refused += r->count;
	if (!c->recorded && !c->ended && !c->unasked && !refused)
		return;
	printf("followed: %s recorded (%s", counted(c->recorded, "process"),
	       counted(c->allocations, event));
	if (c->mapped_bytes)
		printf("; %s mapped by the programs themselves, not by malloc",
		       human(c->mapped_bytes));
	putchar(')');
	if (c->ended)
		printf(", %s ended before memprof was attached", thousands(c->ended));
	if (c->unasked)
		printf(", %s not yet attached to when the recording ended", thousands(c->unasked));
	if (refused)
		printf(", %s refused", thousands(refused));
	putchar('\n');
	vec_for_each (&c->refused, r) {
		printf("  refused: %s", printable(r->first.what));
		if (r->count > 1)
			printf(" (and %s for the same reason)", thousands(r->count - 1));
		putchar('\n');
	}
	for (size_t i = 0; c->recorded <= CHILDREN_SHOWN && i < c->shown.n; i++)
		printf("  process %d: %s in %s\n", c->shown.at[i].pid,
		       counted(c->shown.at[i].allocations, event), printable(c->shown.at[i].path));
}

const struct notices *notices_printed(bool background)
{
	static struct printed state;
	static const struct notices printed = {.message = message,
					       .error = error,
					       .begun = begun,
					       .started = started,
					       .progress = progress,
					       .progress_over = progress_over,
					       .ended = ended,
					       .embedded = embedded,
					       .restored = restored,
					       .followed = followed,
					       .ctx = &state};

	state = (struct printed){.in_background = background};
	return &printed;
}
