/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that records itself.  A process cannot attach to itself, since it would have to stop and work at the same
 * time: a child does it, which is forked before the program has threads.
 *
 *	cc self.c $(pkg-config --cflags --libs memprof) -o self
 *	./self
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memprof.h"

static int say(const char *what, const struct memprof_error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	return e->code;
}

/* In the child: records the parent from one byte of the socket to the next; returns the exit status. */
static int record_parent(int with_parent)
{
	struct memprof_attach_options o = {.size = sizeof(o)};
	struct memprof_progress p = {.size = sizeof(p)};
	struct memprof_error e;
	memprof_session *s;
	char byte;
	int code;

	o.output = "self-%p.memprof";
	if (read(with_parent, &byte, 1) != 1)
		return 0; /* the parent has ended */
	if (memprof_attach(getppid(), &o, &s, &e))
		return say("attach", &e);
	if (write(with_parent, "", 1) != 1 || read(with_parent, &byte, 1) != 1)
		byte = 0; /* the parent has ended: so has the recording */
	code = memprof_stop(s, &e);
	memprof_look(s, &p);
	if (!code)
		printf("%s: %llu allocations, %llu bytes are live\n", memprof_path(s),
		       (unsigned long long)p.allocations, (unsigned long long)p.live_bytes);
	memprof_free(s);
	return code ? say("record", &e) : 0;
}

static void work(void)
{
	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	if (strdup("what is not freed is live"))
		puts("worked");
}

int main(void)
{
	int status, end[2];
	pid_t child;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	close(end[child ? 1 : 0]);
	if (!child)
		return record_parent(end[1]);

	/* Where yama allows only parents to trace. */
	prctl(PR_SET_PTRACER, child, 0, 0, 0);
	if (write(end[0], "", 1) == 1 && read(end[0], &byte, 1) == 1)
		work();
	close(end[0]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
