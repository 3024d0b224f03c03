/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Function results that must be checked. */
#ifndef LIB_CHECK_H
#define LIB_CHECK_H

/* For a function whose result the caller must use. */
#define __must_check __attribute__((warn_unused_result))

/* Ignores the result of a __must_check function.  A comment at the call must explain why. */
static inline void ignore_result(long result)
{
	(void)result;
}

#endif
