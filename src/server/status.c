/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/status.h"

#include <errno.h>

unsigned int status_of(int code, const struct mp_err *err)
{
	switch (code) {
	case -ENOMEM:
		return HTTP_UNAVAILABLE;
	case -ENAMETOOLONG:
		return HTTP_URI_TOO_LONG;
	case -ENOENT:
		return HTTP_NOT_FOUND;
	case -ESRCH:
	case -ESHUTDOWN:
	case -EBUSY:
		return HTTP_CONFLICT;
	case -ENOSYS:
		return HTTP_NOT_IMPLEMENTED;
	default:
		return err->exit == MP_EXIT_USAGE ? HTTP_BAD_REQUEST : HTTP_FAILURE;
	}
}
