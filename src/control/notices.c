/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/notices.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE 8192

static void no_message(void *ctx, const char *line)
{
	(void)ctx, (void)line;
}

static void no_error(void *ctx, const struct mp_err *err)
{
	(void)ctx, (void)err;
}

static void no_begun(void *ctx, const struct recording_begun *b)
{
	(void)ctx, (void)b;
}

static void no_started(void *ctx)
{
	(void)ctx;
}

static void no_progress(void *ctx, const struct recorder_progress *p, bool page_faults)
{
	(void)ctx, (void)p, (void)page_faults;
}

static void no_progress_over(void *ctx)
{
	(void)ctx;
}

static void no_ended(void *ctx, const struct summary *s)
{
	(void)ctx, (void)s;
}

static void no_embedded(void *ctx, const struct embedding *e)
{
	(void)ctx, (void)e;
}

static void no_restored(void *ctx, uint32_t n, bool unfollowed)
{
	(void)ctx, (void)n, (void)unfollowed;
}

static void no_followed(void *ctx, const struct children *c, bool page_faults)
{
	(void)ctx, (void)c, (void)page_faults;
}

struct notices notices_silent(void *ctx)
{
	return (struct notices){.message = no_message,
				.error = no_error,
				.begun = no_begun,
				.started = no_started,
				.progress = no_progress,
				.progress_over = no_progress_over,
				.ended = no_ended,
				.embedded = no_embedded,
				.restored = no_restored,
				.followed = no_followed,
				.ctx = ctx};
}

void notice(const struct notices *n, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	n->message(n->ctx, line);
}

int notice_error(const struct notices *n, const struct mp_err *err)
{
	n->error(n->ctx, err);
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
}
