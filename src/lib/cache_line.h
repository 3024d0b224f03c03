/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The size of a cache line.  What different threads change often is that far apart. */
#ifndef LIB_CACHE_LINE_H
#define LIB_CACHE_LINE_H

#define CACHE_LINE 64

#endif
