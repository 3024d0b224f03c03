/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options of memprof_attach(), as the recorder's. */
#ifndef API_ATTACH_OPTIONS_H
#define API_ATTACH_OPTIONS_H

#include "api/memprof.h"
#include "control/options.h"
#include "lib/err.h"

/* A copy of the caller's options. */
struct attach_options {
	struct memprof_attach_options given;
	char *output, *to, *token_file; /* its strings */
};

/**
 * attach_options_take() - copy and check the caller's options
 * @from: NULL: all defaults
 * @copy: to be freed by attach_options_free(), also after an error
 * @o: set, except for notices and orders; its strings are @copy's
 * Return: 0, or a negative errno with @err.
 */
int attach_options_take(const struct memprof_attach_options *from, struct attach_options *copy,
			struct recording_options *o, struct mp_err *err);
void attach_options_free(struct attach_options *copy);

#endif
