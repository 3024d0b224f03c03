/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Responses of libmicrohttpd, with the headers that all of them have. */
#ifndef SERVER_RESPONSE_H
#define SERVER_RESPONSE_H

#include <microhttpd.h>

struct access_rules;

/* Takes over @r; NULL: out of memory, the connection is closed. */
enum MHD_Result response_send(struct MHD_Connection *c, const struct access_rules *rules,
			      unsigned int status, const char *type, struct MHD_Response *r);
/* Sends the page (export/html.h), which is a part of this site and says itself what it may load.  @page: lasts */
enum MHD_Result response_page(struct MHD_Connection *c, const struct access_rules *rules,
			      const char *page, size_t size);
/* @why: one line, which can have any character */
enum MHD_Result response_refuse(struct MHD_Connection *c, const struct access_rules *rules,
				unsigned int status, const char *why);
/* @methods: that are allowed, as in the Allow header */
enum MHD_Result response_wrong_method(struct MHD_Connection *c, const struct access_rules *rules,
				      const char *methods);
/* For a page of a site that the rules name (CORS protocol, preflight request). */
enum MHD_Result response_preflight(struct MHD_Connection *c, const struct access_rules *rules);
/* A browser opened the URL with the token: from now on it sends the cookie of this name. */
enum MHD_Result response_log_in(struct MHD_Connection *c, const struct access_rules *rules,
				const char *cookie);

#endif
