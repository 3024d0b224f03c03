/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maps addresses to frames, from the recording's symbols. */
#ifndef MODEL_NAMES_NAMES_H
#define MODEL_NAMES_NAMES_H

#include "formats/file.h"

struct names;
struct names *names_new(void);
void names_free(struct names *n);
/* Adds copies of the symbols of @pc.  Return: 0 or -ENOMEM. */
int names_add(struct names *n, uint64_t pc, const struct mp_symbol *sym, uint32_t count);
/* Return: the symbols of @pc with their number in *@count, or NULL. */
const struct mp_symbol *names_find(const struct names *n, uint64_t pc, uint32_t *count);

#endif
