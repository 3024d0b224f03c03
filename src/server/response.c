/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/response.h"

#include <stdio.h>
#include "lib/printable.h"
#include "server/access.h"
#include "server/endpoint.h"
#include "server/status.h"

/* The scripts of graphs and pages run, but not as a part of this site. */
static const char foreign[] = "sandbox allow-scripts; default-src 'none'; style-src "
			      "'unsafe-inline'; script-src 'unsafe-inline'";
static const char own_page[] = "frame-ancestors 'none'";

/* @policy: the Content-Security-Policy */
static enum MHD_Result send_with(struct MHD_Connection *c, const struct access_rules *rules,
				 unsigned int status, const char *type, const char *policy,
				 struct MHD_Response *r)
{
	const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Vary", "Origin");
	MHD_add_response_header(r, "Content-Security-Policy", policy);
	if (origin && access_is_named(rules, origin))
		MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
	if (status == HTTP_UNAUTHORIZED)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
	if (status == HTTP_UNAVAILABLE)
		MHD_add_response_header(r, "Retry-After", "1");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

enum MHD_Result response_send(struct MHD_Connection *c, const struct access_rules *rules,
			      unsigned int status, const char *type, struct MHD_Response *r)
{
	return send_with(c, rules, status, type, foreign, r);
}

enum MHD_Result response_page(struct MHD_Connection *c, const struct access_rules *rules,
			      const char *page, size_t size)
{
	return send_with(
	    c, rules, HTTP_OK, TYPE_HTML, own_page,
	    MHD_create_response_from_buffer(size, (void *)(uintptr_t)page, MHD_RESPMEM_PERSISTENT));
}

static struct MHD_Response *line(const char *what)
{
	char text[PRINTABLE_SIZE + 2];
	int n = snprintf(text, sizeof(text), "%s\n", printable(what));

	return MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result response_refuse(struct MHD_Connection *c, const struct access_rules *rules,
				unsigned int status, const char *why)
{
	return response_send(c, rules, status, TYPE_TEXT, line(why));
}

enum MHD_Result response_wrong_method(struct MHD_Connection *c, const struct access_rules *rules,
				      const char *methods)
{
	struct MHD_Response *r =
	    line("the method is not allowed here; the Allow header names those "
		 "that are");

	if (r)
		MHD_add_response_header(r, "Allow", methods);
	return response_send(c, rules, HTTP_METHOD_NOT_ALLOWED, TYPE_TEXT, r);
}

enum MHD_Result response_preflight(struct MHD_Connection *c, const struct access_rules *rules)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);

	if (r) {
		MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, HEAD, POST");
		MHD_add_response_header(r, "Access-Control-Allow-Headers", "Authorization");
	}
	return response_send(c, rules, MHD_HTTP_NO_CONTENT, TYPE_TEXT, r);
}

enum MHD_Result response_log_in(struct MHD_Connection *c, const struct access_rules *rules,
				const char *cookie)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
	char text[160];

	snprintf(text, sizeof(text), "%s=%s; Path=/; HttpOnly; SameSite=Strict", cookie,
		 rules->token);
	if (r) {
		MHD_add_response_header(r, "Set-Cookie", text);
		MHD_add_response_header(r, "Location", "/");
	}
	return response_send(c, rules, MHD_HTTP_SEE_OTHER, TYPE_TEXT, r);
}
