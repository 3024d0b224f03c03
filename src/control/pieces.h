/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recording in pieces: their names, and their symbols, which are written while the program runs.
 */
#ifndef CONTROL_PIECES_H
#define CONTROL_PIECES_H

#include <stdint.h>
#include "control/state.h"
#include "record/recorder.h"

/* The rotation to pieces of @bytes (0: none); its callbacks' ctx is the struct recording. */
struct recorder_rotation recording_rotation(uint64_t bytes);
/* Reports, once, why the next piece could not be started, or an old one not deleted. */
void recording_tell_piece_error(struct recording *rec);

#endif
