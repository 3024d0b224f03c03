/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --embed: puts the binaries of the executed code into the recording. */
#ifndef CONTROL_EMBED_H
#define CONTROL_EMBED_H

#include <sys/types.h>
#include "formats/file.h"
#include "lib/vec.h"

struct embeddable {
	struct mp_module m; /* path owned */
	uint64_t ino;
};

/* If zeroed: nothing is embedded. */
struct embedding {
	VEC(struct embeddable) modules; /* all that were ever mapped */
	uint64_t files, bytes;
	char left_out[2000]; /* which files were left out, and why */
};

/* Notes a module that was mapped from inode @ino. */
void embedding_add(struct embedding *e, const struct mp_module *m, uint64_t ino);

/**
 * embedding_put() - write the files of the modules that contain any of the addresses
 * @pid: the process that has the modules mapped; 0: it has ended
 * @pc, @n: the addresses, as passed to recorder_ending.embed
 *
 * Writes only regular files, and only if the file is the mapped one or has its build id; the others
 * are noted as left out.  Write errors are reported by the writer.
 */
void embedding_put(struct embedding *e, pid_t pid, struct mpf_writer *w, const uint64_t *pc,
		   uint64_t n);

void embedding_free(struct embedding *e);

#endif
