/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The frames of a stack. */
#ifndef API_FRAMES_H
#define API_FRAMES_H

#include "api/memprof.h"
#include "model/model.h"

/* As memprof_frames_begin(), for a model. */
int frames_begin(struct model *m, uint32_t stack, memprof_frames **f, struct memprof_error *err);

#endif
