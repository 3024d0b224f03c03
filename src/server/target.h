/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The target of a request (RFC 9112, section 3.2), still percent-encoded. */
#ifndef SERVER_TARGET_H
#define SERVER_TARGET_H

struct target {
	char *text;	   /* owns the others */
	const char *path;  /* can be empty */
	const char *query; /* "": none */
	/* Clients that take this server for a proxy send http://HOST/PATH: then HOST counts instead of the
	 * header.  NULL: not given. */
	const char *host;
};

/* Return: 0 with @t, to be freed by target_free(), or -ENOMEM. */
int target_split(const char *uri, struct target *t);
void target_free(struct target *t);

#endif
