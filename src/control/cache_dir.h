/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where files are kept between runs. */
#ifndef CONTROL_CACHE_DIR_H
#define CONTROL_CACHE_DIR_H

#include <stddef.h>

/* Directory for files kept between runs: $MEMPROF_CACHE_DIR (if set but empty: none), else memprof
 * in the user's cache directory.  Return: @buf, or NULL if there is none. */
const char *cache_dir_path(char *buf, size_t size);

#endif
