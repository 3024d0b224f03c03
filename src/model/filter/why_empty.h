/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the condition of a filter that no allocation of a recording meets. */
#ifndef MODEL_FILTER_WHY_EMPTY_H
#define MODEL_FILTER_WHY_EMPTY_H

#include <stdbool.h>
#include <stddef.h>
#include "model/filter/filter.h"

struct model;

/**
 * filter_why_empty() - explain why no allocation passed a filter
 * @m: loaded with @f
 * @why: set to a text such as "--thread x: the recording has no such thread"; can contain any
 * characters that the user wrote
 *
 * Return: true with @why set; false if some allocation passed, or @f is empty.
 */
bool filter_why_empty(const struct filter *f, struct model *m, char *why, size_t size);

#endif
