/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/notices.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE 8192

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
