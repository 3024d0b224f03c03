/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether a request may be answered.  Without a token every program of this machine may ask, but no
 * web page of another site: a page can make a browser send requests, and can let its own name point
 * to this machine (DNS rebinding), but it can change neither Host nor Origin.
 */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#define ACCESS_TOKEN_LENGTH 32u

struct access_rules {
	const char *token; /* NULL: none is needed */
	/* Names by which the server is called, beside localhost and IP addresses; each list ends with NULL. */
	const char *const *hosts;
	/* Other sites whose pages may ask, as in https://example.org */
	const char *const *origins;
};

/* What a request says of itself; NULL: it does not have the header. */
struct access_request {
	const char *host, *origin, *authorization;
	const char *site, *mode; /* Sec-Fetch-Site, Sec-Fetch-Mode */
	const char *cookie;	 /* the value of the cookie with the token */
};

/* Return: 200, or the status of the refusal with @why, one line. */
unsigned int access_check(const struct access_rules *rules, const struct access_request *r,
			  const char **why);
/* Return: whether @given is the token, in a time that does not depend on where they differ. */
bool access_is_token(const struct access_rules *rules, const char *given);
/* Return: whether a page of @origin may read answers, because the rules name it. */
bool access_is_named(const struct access_rules *rules, const char *origin);

/* Makes a token of random digits.  Return: 0 or a negative errno. */
int access_make_token(char token[ACCESS_TOKEN_LENGTH + 1]);

#endif
