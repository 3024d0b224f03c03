/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How other memprof processes talk to a recorder: a socket in the abstract namespace (nothing is
 * left on any file system) with a random name that stands in the session's journal.  Both sides
 * check by SO_PEERCRED: the recorder serves its own user and root only, the caller speaks only to
 * the process that the journal names.  One request, one answer, both a line of text.
 */
#ifndef RECORD_CONTROL_H
#define RECORD_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

#define CONTROL_NAME   40   /* bytes of a name, NUL included */
#define CONTROL_ANSWER 4096 /* most bytes of an answer, NUL included */

struct control;

/**
 * control_open() - listen, and serve on a thread of its own
 * @name: filled
 * @serve: called for each request with the line, without its end; fills @answer, one line without
 * its end.  May take its time: others wait.
 * Return: 0 or a negative errno.
 */
int control_open(char name[CONTROL_NAME],
		 void (*serve)(void *ctx, const char *line, char answer[CONTROL_ANSWER]), void *ctx,
		 struct control **c);
/* No new request is taken; waits for the one that is being served.  NULL is fine. */
void control_close(struct control *c);

/**
 * control_ask() - one request to the recorder @pid that listens at @name
 * Return: 0 with @answer filled; -ECONNREFUSED: nobody listens there (in this network namespace);
 * -EPERM: somebody else does; -EACCES: it does not serve this user; another negative errno.
 */
int control_ask(const char *name, pid_t pid, const char *line, char answer[CONTROL_ANSWER]);

#endif
