/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of the recorded process: writes them and their symbols into the recording. */
#ifndef CONTROL_MODULES_H
#define CONTROL_MODULES_H

#include <stdint.h>
#include "control/state.h"
#include "formats/file.h"
#include "unwind/symbols.h"

/* Reads the symbols of all mapped modules.  Takes rec->lock.  To be freed by symbols_free(). */
struct symbols *recording_symbols(struct recording *rec);
/* Writes the symbols of the addresses.  @symbols: NULL: none. */
void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n);
/* Writes all modules: recorder_ending.modules. */
void recording_put_modules(void *rec, struct mpf_writer *w);

#endif
