/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The limit of open files. */
#ifndef CONTROL_DESCRIPTORS_H
#define CONTROL_DESCRIPTORS_H

#include <stdint.h>
#include "lib/err.h"

/* Return: 0, or -EMFILE with @err if fewer than @n (at most 64) more files can be opened.  Refusing early is
 * better than being unable to detach. */
int want_descriptors(uint32_t n, struct mp_err *err);

#endif
