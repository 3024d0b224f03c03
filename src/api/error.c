/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>
#include "lib/printable.h"

int api_error(struct memprof_error *out, const struct mp_err *err)
{
	int code = err->exit ? (int)err->exit : MEMPROF_FAILURE;

	return api_fail(out, code, err->code, "%s", printable(err->what));
}

int api_fail(struct memprof_error *out, int code, int ret, const char *fmt, ...)
{
	va_list ap;

	if (!out)
		return code;
	out->code = code;
	out->system = ret < 0 ? -ret : 0;
	va_start(ap, fmt);
	vsnprintf(out->text, sizeof(out->text), fmt, ap);
	va_end(ap);
	return code;
}
