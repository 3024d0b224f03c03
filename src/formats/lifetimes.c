/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/lifetimes.h"

#define DECADE(ns) (ns), 2 * (ns), 5 * (ns)

/* The shortest lifetime of each class. */
static const uint64_t least[LIFETIME_CLASSES] = {0,
						 DECADE(1000ull),
						 DECADE(10000ull),
						 DECADE(100000ull),
						 DECADE(1000000ull),
						 DECADE(10000000ull),
						 DECADE(100000000ull),
						 DECADE(1000000000ull),
						 DECADE(10000000000ull),
						 DECADE(100000000000ull),
						 DECADE(1000000000000ull),
						 10000000000000ull};

uint32_t lifetime_class(uint64_t ns)
{
	/* A class begins at least at 1.6 times the one before, so that two powers of two can have the
	 * limits of two classes between them. */
	uint32_t bits = 63u - (uint32_t)__builtin_clzll(ns | 1), i = 0;

	if (bits >= 10)
		i = (bits - 10) * 9 / 10 > LIFETIME_CLASSES - 1 ? LIFETIME_CLASSES - 1
								: (bits - 10) * 9 / 10;
	while (i && least[i] > ns)
		i--;
	while (i + 1 < LIFETIME_CLASSES && least[i + 1] <= ns)
		i++;
	return i;
}

uint64_t lifetime_least(uint32_t i)
{
	return i < LIFETIME_CLASSES ? least[i] : UINT64_MAX;
}
