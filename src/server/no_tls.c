/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/no_tls.h"

int no_tls(void)
{
	return -1;
}

#define NO_TLS(name) __attribute__((alias("no_tls"))) int name(void);
#include "server/gnutls_names.h"
