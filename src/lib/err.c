/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/err.h"

#include <stdarg.h>
#include <stdio.h>

int mp_fail(struct mp_err *err, enum mp_exit exit, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		err->exit = exit;
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->what, sizeof(err->what), fmt, ap);
		va_end(ap);
	}
	return code;
}
