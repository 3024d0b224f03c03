/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/servers.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/human.h"
#include "lib/printable.h"

#define EVERY_NS 100000000u

static struct {
	bool shown;
	uint64_t last_ns;
} line; /* of the progress on the terminal */

/* As it is in a recorder, which the signal does not end. */
static bool is_blocked(int sig)
{
	sigset_t set;

	return !pthread_sigmask(SIG_BLOCK, NULL, &set) && sigismember(&set, sig);
}

static void show(void *ctx, uint64_t done, uint64_t total)
{
	uint64_t now = mono_ns();

	(void)ctx;
	if (!isatty(STDERR_FILENO) || now - line.last_ns < EVERY_NS)
		return;
	line.last_ns = now;
	line.shown = true;
	fprintf(stderr, "\r\033[Kdebuginfod: %s", human(done));
	if (total)
		fprintf(stderr, " of %s", human(total));
	fputs(is_blocked(SIGINT) ? "; Ctrl-C continues without" : "", stderr);
	fflush(stderr);
}

struct debuginfod *servers_new(enum debuginfod_ask ask)
{
	const char *urls = debuginfod_urls(ask);

	return urls ? debuginfod_new(urls, show, NULL) : NULL;
}

void servers_report(const struct debuginfod *d, FILE *out)
{
	struct debuginfod_result r = {0};

	if (d)
		r = debuginfod_result(d);
	if (line.shown)
		fputs("\r\033[K", stderr);
	line.shown = false;
	if (!r.wanted)
		return;
	fprintf(out, "debuginfod: debug information of %s of %s", thousands(r.found),
		counted(r.wanted, "file"));
	if (r.bytes)
		fprintf(out, "; %s downloaded\n", human(r.bytes));
	else
		fputs(r.found ? ", from the cache\n" : "\n", out);
	if (r.wrong)
		fprintf(stderr, "memprof: debuginfod: %s of another build; not used\n",
			counted(r.wrong, "answer"));
	if (r.failure)
		fprintf(stderr, "memprof: debuginfod: %s; no more files were asked for\n",
			printable(r.failure));
}
