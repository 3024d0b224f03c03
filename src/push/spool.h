/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests that wait to be sent: files of a directory, so that they survive a server's absence and memprof's end.
 *
 * Only their owner can read them.  When there are too many bytes, the oldest are dropped, and counted.  Several processes
 * can use one directory: a file is locked while it is sent.
 */
#ifndef PUSH_SPOOL_H
#define PUSH_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

struct spool {
	int dir;
	uint64_t limit;	  /* bytes */
	uint64_t dropped; /* files, since they were too many or could not be written */
	uint32_t number;
};

/* A request. */
struct spooled {
	char name[NAME_MAX + 1]; /* of its file */
	int fd;			 /* locked */
	char *query;		 /* appended to the URL; "" */
	char *body;
	size_t n;
};

/* Opens the directory @path, which is made if it is missing.  Return: 0 or a negative errno with @err. */
int spool_open(struct spool *s, const char *path, uint64_t limit, struct mp_err *err);
void spool_close(struct spool *s);

/* Adds a request.  Return: 0 or a negative errno: it is lost, and counted. */
int spool_put(struct spool *s, const char *query, const void *body, size_t n);
/* Takes the oldest request that no process is sending.  Return: 1 with @r, 0: there is none; or a negative errno. */
int spool_take(struct spool *s, struct spooled *r);
/* Ends spool_take(): the request is done with, or @keep stays. */
void spool_done(struct spool *s, struct spooled *r, bool keep);
/* Return: the number of requests. */
uint32_t spool_count(struct spool *s);

#endif
