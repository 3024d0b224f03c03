/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/progress.h"

#include <stdio.h>
#include <unistd.h>
#include "lib/deadline.h"

#define SILENT_NS 1000000000u
#define EVERY_NS  100000000u
#define BAR	  "########################################"

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){
	    .what = what, .start_ns = mono_ns(), .terminal = isatty(STDERR_FILENO)};
}

void progress_tell(void *ctx, double done)
{
	const int width = (int)sizeof(BAR) - 1;
	struct progress *p = ctx;
	uint64_t now;

	if (!p->terminal)
		return;
	now = mono_ns();
	if (done < p->done)
		p->start_ns = now; /* the next pass over the file */
	p->done = done;
	if (now - p->start_ns < SILENT_NS || now - p->last_ns < EVERY_NS)
		return;
	p->last_ns = now;
	p->shown = true;
	done = done < 0 ? 0 : done > 1 ? 1 : done;
	fprintf(stderr, "\r\033[K%s [%-*.*s] %3.0f %%, %.0f s left", p->what, width,
		(int)(done * width), BAR, done * 100,
		done > 0.01 ? (double)(now - p->start_ns) / 1e9 * (1 - done) / done : 0.0);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
