/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flush waits for a receiver that acknowledges nothing; memprof_stop(), when there is a line on stdin, ends its
 * wait.  Prints what each returned.
 * Usage: unblock PID HOST:PORT TOKEN
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "memprof.h"

#define DELIVER_MS 500

static void *flush(void *arg)
{
	struct memprof_error e = {0};
	int code = memprof_flush(arg, NULL, &e);

	printf("flush %d %s\n", code, e.text);
	return NULL;
}

int main(int argc, char **argv)
{
	struct memprof_attach_options o = {.size = sizeof(o)};
	struct memprof_error e = {0};
	memprof_session *s;
	pthread_t thread;
	int code;

	if (argc != 4)
		return 2;
	o.to = argv[2];
	o.token_file = argv[3];
	o.deliver_ms = DELIVER_MS;
	if (memprof_attach(atoi(argv[1]), &o, &s, &e)) {
		printf("attach %s\n", e.text);
		return 1;
	}
	pthread_create(&thread, NULL, flush, s);
	getchar();
	code = memprof_stop(s, &e);
	printf("stop %d %s\n", code, e.text);
	pthread_join(thread, NULL);
	memprof_free(s);
	return 0;
}
