/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In place of each function of GnuTLS that libmicrohttpd's archive refers to.  The server does not
 * ask for TLS (doc/rest.md), so only gnutls_global_init() is called, and libmicrohttpd does not look
 * at its result.
 */
#ifndef SERVER_NO_TLS_H
#define SERVER_NO_TLS_H

/* Return: -1, as a failed call. */
int no_tls(void);

#endif
