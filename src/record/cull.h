/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Culling: events are held back until they are older than a given age.  A block that is freed
 * earlier is not written; only its contribution to the sums of its stack, threads and functions is
 * (mp_culled).  Blocks that went through a realloc are always written.
 */
#ifndef RECORD_CULL_H
#define RECORD_CULL_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct cull;

/* Culls blocks that live shorter than @age_ns and writes the other events to @file, @age_ns later.
 * Return: NULL when out of memory. */
struct cull *cull_new(uint64_t age_ns, struct mpf_writer *file);
void cull_free(struct cull *c);
/* Makes @file the output.  No event must be held back at this time. */
void cull_set_file(struct cull *c, struct mpf_writer *file);
/* Adds the next event; events must be in order of time.  @keep: never cull this allocation (its
 * address was live already, so the next free of the address could be of either block).  Return: 0
 * or a negative errno. */
int cull_put(struct cull *c, const struct mp_event *ev, bool keep);
/* Writes the events that are old enough at @now_ns.  Return: 0 or a negative errno. */
int cull_advance(struct cull *c, uint64_t now_ns);
/* Return: the number of events of @kind (enum ev_kind) that are held back. */
uint64_t cull_waiting(const struct cull *c, uint8_t kind);
/* Writes the sums since the last call.  Return: 0 or a negative errno. */
int cull_put_sums(struct cull *c);

#endif
