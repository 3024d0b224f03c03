/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of the recorded process: follows their changes, and writes them and their symbols into the recording. */
#ifndef CONTROL_MODULES_H
#define CONTROL_MODULES_H

#include <stdint.h>
#include "control/state.h"
#include "formats/file.h"
#include "unwind/symbols/symbols.h"

/* Notes the code in the tables of the session, which were updated since @read_ns (CLOCK_MONOTONIC).  The caller holds rec->lock.
 * Return: 0 or -ENOMEM. */
int recording_note_code(struct recording *rec, uint64_t read_ns);
/* Applies what the side band told to the tables, before they are updated.  The caller holds rec->lock. */
void recording_prepare_tables(struct recording *rec);
/* Return: what the side band told since the last call, without the list of code. */
struct sideband_news recording_news(struct recording *rec);
/* Return: when code was last mapped in the place of other code (CLOCK_MONOTONIC); 0: never, as far as known. */
uint64_t recording_code_replaced(struct recording *rec);
/* Return: whether code took the place of other code for which the tables still are. */
bool recording_code_is_stale(struct recording *rec);
/* recorder_config.next_module and next_change. */
bool recording_next_module(void *rec, struct mp_module *m);
bool recording_next_change(void *rec, struct code_change *c);

/* Return: a copy of the list of all code that is or was mapped, to be freed; its paths stay valid.  @n: its length; 0 if out
 * of memory. */
struct code_entry *recording_code(struct recording *rec, size_t *n);
/* Reads the symbols of all modules that are or were mapped.  Takes rec->code_lock.  To be freed by symbols_free(). */
struct symbols *recording_symbols(struct recording *rec);
/* Writes the symbols of the addresses.  @symbols: NULL: none. */
void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n);
/* Writes all modules: recorder_ending.modules. */
void recording_put_modules(void *rec, struct mpf_writer *w);

#endif
