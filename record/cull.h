/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Culling: events wait here until they are old enough.  A block that is freed before that is not
 * written at all; what it adds to the sums of its stack, threads and functions is (mp_culled).
 * Blocks that went through a realloc are kept, however short they lived.
 */
#ifndef RECORD_CULL_H
#define RECORD_CULL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct cull;

/* Blocks that live shorter than @age_ns are culled; the rest goes to @file, @age_ns later.
 * Return: NULL when out of memory. */
struct cull *cull_new(uint64_t age_ns, struct mpf_writer *file);
void cull_free(struct cull *c);
/* From now on it writes to @file; nothing may wait. */
void cull_set_file(struct cull *c, struct mpf_writer *file);
/* Takes the next event; in order of time.  @keep: an allocation whose address was live, so that
 * whose the next free is cannot be told.  Return: 0 or a negative errno. */
int cull_put(struct cull *c, const struct mp_event *ev, bool keep);
/* Writes the events that are old enough at @now_ns.  Return: 0 or a negative errno. */
int cull_advance(struct cull *c, uint64_t now_ns);
/* Events of a kind (enum ev_kind) that wait and are not in the file yet. */
uint64_t cull_waiting(const struct cull *c, uint8_t kind);
/* Writes the sums since the last call.  Return: 0 or a negative errno. */
int cull_put_sums(struct cull *c);

#endif
