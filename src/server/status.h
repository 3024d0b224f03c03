/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The HTTP statuses that the server answers with (RFC 9110, section 15). */
#ifndef SERVER_STATUS_H
#define SERVER_STATUS_H

#include "lib/err.h"

enum http_status {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_UNAUTHORIZED = 401,
	HTTP_FORBIDDEN = 403,
	HTTP_NOT_FOUND = 404,
	HTTP_METHOD_NOT_ALLOWED = 405,
	HTTP_CONFLICT = 409,
	HTTP_TOO_LARGE = 413,
	HTTP_URI_TOO_LONG = 414,
	HTTP_MISDIRECTED = 421,
	HTTP_FAILURE = 500,
	HTTP_NOT_IMPLEMENTED = 501,
	HTTP_UNAVAILABLE = 503,
	HTTP_TIMEOUT = 504,
};

/* Return: the status for an error @code with @err. */
unsigned int status_of(int code, const struct mp_err *err);

#endif
