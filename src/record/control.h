/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests from other memprof processes to a recorder: a socket in the abstract namespace (no file
 * remains) whose random name is in the session's journal.  Both sides check SO_PEERCRED: the
 * recorder serves only its own user and root, the caller talks only to the process that the
 * journal names.  A connection carries one request and one answer, each a line of text; with an answer
 * a descriptor can be passed.
 */
#ifndef RECORD_CONTROL_H
#define RECORD_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

#define CONTROL_NAME   40   /* bytes of a name, NUL included */
#define CONTROL_ANSWER 4096 /* maximum bytes of an answer, NUL included */

struct control;

struct control_answer {
	char text[CONTROL_ANSWER]; /* one line, without a newline */
	int fd;			   /* a descriptor that is passed; -1: none */
};

/**
 * control_open() - listen, and serve requests in a new thread
 * @name: filled
 * @serve: called for each request with the line, without its newline; fills @answer, whose descriptor is
 * then closed.  It can be slow: requests are served one after another.
 * Return: 0 or a negative errno.
 */
int control_open(char name[CONTROL_NAME],
		 void (*serve)(void *ctx, const char *line, struct control_answer *answer),
		 void *ctx, struct control **c);
/* Accepts no more requests and waits for the one that is being served.  @c can be NULL. */
void control_close(struct control *c);

/**
 * control_ask() - send one request to the recorder @pid that listens at @name
 * @passed: set to the descriptor that came with the answer, which is the caller's, or -1; NULL: none is
 * expected
 *
 * Return: 0 with @answer filled; -ECONNREFUSED: no process listens at @name (in this network
 * namespace); -EPERM: another process does; -EACCES: it does not serve this user; another negative
 * errno.
 */
int control_ask(const char *name, pid_t pid, const char *line, char answer[CONTROL_ANSWER],
		int *passed);

#endif
