/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include "lib/hex.h"
#include "server/status.h"

#define LONGEST_HOST 255u

/* Copies the name of "name:port" or "[address]:port".  Return: false if it is neither. */
static bool host_name(const char *host, char name[LONGEST_HOST + 1])
{
	bool address = *host == '[';
	size_t n = address ? strcspn(++host, "]") : strcspn(host, ":");
	const char *rest = host + n;

	if (!n || n > LONGEST_HOST || (address && *rest++ != ']'))
		return false;
	if (*rest && (*rest != ':' || !rest[1] || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	memcpy(name, host, n);
	name[n] = 0;
	return true;
}

static bool in_list(const char *const *list, const char *text)
{
	for (; list && *list; list++) {
		if (!strcasecmp(*list, text))
			return true;
	}
	return false;
}

/* A name that a stranger controls can point to this machine; an address, and these names, cannot. */
static bool host_is_ours(const struct access_rules *rules, const char *host)
{
	char name[LONGEST_HOST + 1];
	struct in6_addr address;

	return host_name(host, name) &&
	       (!strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1 ||
		inet_pton(AF_INET6, name, &address) == 1 || in_list(rules->hosts, name));
}

bool access_is_named(const struct access_rules *rules, const char *origin)
{
	return in_list(rules->origins, origin);
}

/* Return: whether a page of the server itself sent the request; also through a proxy with TLS. */
static bool is_same_origin(const char *origin, const char *host)
{
	const char *scheme = !strncmp(origin, "http://", 7)    ? origin + 7
			     : !strncmp(origin, "https://", 8) ? origin + 8
							       : "";

	return !strcasecmp(scheme, host);
}

/* Another site's page may link to the server, which browsers call to navigate, but not use it. */
static bool is_foreign(const struct access_rules *rules, const struct access_request *r)
{
	if (r->origin)
		return !is_same_origin(r->origin, r->host) && !access_is_named(rules, r->origin);
	return r->site && (!strcmp(r->site, "cross-site") || !strcmp(r->site, "same-site")) &&
	       (!r->mode || strcmp(r->mode, "navigate") != 0);
}

bool access_is_token(const struct access_rules *rules, const char *given)
{
	volatile uint8_t differ = 0;

	if (!rules->token || strlen(given) != ACCESS_TOKEN_LENGTH)
		return false;
	for (size_t i = 0; i < ACCESS_TOKEN_LENGTH; i++)
		differ |= (uint8_t)(rules->token[i] ^ given[i]);
	return !differ;
}

static bool has_token(const struct access_rules *rules, const struct access_request *r)
{
	if (r->authorization && !strncasecmp(r->authorization, "Bearer ", 7) &&
	    access_is_token(rules, r->authorization + 7))
		return true;
	return r->cookie && access_is_token(rules, r->cookie);
}

unsigned int access_check(const struct access_rules *rules, const struct access_request *r,
			  const char **why)
{
	if (!r->host) {
		*why = "the request has no Host header";
		return HTTP_BAD_REQUEST;
	}
	if (!host_is_ours(rules, r->host)) {
		*why =
		    "this server is not called by that name; memprof server --host NAME adds one";
		return HTTP_MISDIRECTED;
	}
	if (is_foreign(rules, r)) {
		*why = "pages of other sites may not use this server; memprof server --origin URL "
		       "allows one";
		return HTTP_FORBIDDEN;
	}
	if (rules->token && !has_token(rules, r)) {
		*why = "the token that memprof server printed is needed: Authorization: Bearer "
		       "TOKEN, or open the URL that it printed";
		return HTTP_UNAUTHORIZED;
	}
	return HTTP_OK;
}

int access_make_token(char token[ACCESS_TOKEN_LENGTH + 1])
{
	uint8_t random[ACCESS_TOKEN_LENGTH / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	hex_text(random, sizeof(random), token);
	return 0;
}
