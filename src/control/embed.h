/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --embed: puts the binaries of the executed code into the recording. */
#ifndef CONTROL_EMBED_H
#define CONTROL_EMBED_H

#include <sys/types.h>
#include "control/code_history.h"
#include "formats/file.h"

/* If zeroed: nothing is embedded. */
struct embedding {
	uint64_t files, bytes;
	char left_out[2000]; /* which files were left out, and why */
};

/**
 * embedding_put() - write the files of the modules that contain any of the addresses
 * @code, @ncode: all modules
 * @pid: the process that has the modules mapped; 0: it has ended
 * @pc, @n: the addresses, as passed to recorder_ending.embed
 *
 * Writes only regular files, and only if the file is the mapped one or has its build id; the others
 * are noted as left out.  Write errors are reported by the writer.
 */
void embedding_put(struct embedding *e, const struct code_entry *code, size_t ncode, pid_t pid,
		   struct mpf_writer *w, const uint64_t *pc, uint64_t n);

#endif
