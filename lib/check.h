/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results that say whether something failed. */
#ifndef LIB_CHECK_H
#define LIB_CHECK_H

/* Of a function: who calls it has to look at its result. */
#define __must_check __attribute__((warn_unused_result))

/* The result of a __must_check function is of no interest here; say why. */
static inline void ignore_result(long result)
{
	(void)result;
}

#endif
