/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names Python's objects, and the arrays and tables that belong to its containers. */
#ifndef LEAKS_PYTHON_PYTHON_NAMES_H
#define LEAKS_PYTHON_PYTHON_NAMES_H

#include "leaks/types/block_names.h"

/* A source of block_names_take().  Does nothing without Python.  Return: 0 or -ENOMEM. */
int python_names(struct block_names *n, const struct graph *g);

#endif
