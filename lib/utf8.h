/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LIB_UTF8_H
#define LIB_UTF8_H

/* Names come from other people's programs: each byte of @s that is not UTF-8 (RFC 3629) becomes
 * '?'. */
void utf8_clean(char *s);

#endif
