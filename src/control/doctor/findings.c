/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>

void note(struct notes *n, enum verdict v, enum mp_exit exit, const char *topic, const char *advice,
	  const char *fmt, ...)
{
	struct finding f = {.verdict = v, .of_process = n->of_process, .topic = topic};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f.what, sizeof(f.what), fmt, ap);
	va_end(ap);
	snprintf(f.advice, sizeof(f.advice), "%s", advice);
	if (v == VERDICT_MISSING && !n->d->status)
		n->d->status = exit;
	n->failed |= vec_push(&n->d->findings, f) != 0;
}

void note_check(struct notes *n, const char *topic, const struct mp_err *err, const char *advice,
		const char *good)
{
	if (err->exit)
		note(n, VERDICT_MISSING, err->exit, topic, advice, "%s", err->what);
	else
		note(n, VERDICT_OK, MP_EXIT_OK, topic, "", "%s", good);
}
