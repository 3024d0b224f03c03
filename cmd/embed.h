/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --embed: the binaries of what ran, in the recording. */
#ifndef CMD_EMBED_H
#define CMD_EMBED_H

#include <sys/types.h>
#include "formats/file.h"
#include "lib/vec.h"

struct embeddable {
	struct mp_module m; /* path owned */
	uint64_t ino;
};

/* Zeros: nothing is embedded. */
struct embedding {
	VEC(struct embeddable) modules; /* all that ever were */
	uint64_t files, bytes;
	char left_out[2000]; /* which, and why */
};

/* A module has appeared, mapped from inode @ino. */
void embedding_add(struct embedding *e, const struct mp_module *m, uint64_t ino);

/**
 * embedding_put() - write the files of the modules that any of the addresses is in
 * @pid: whose modules they are; 0: it has ended
 * @pc, @n: as of struct recorder_ending
 *
 * Only regular files, and only the one that is mapped or has its build id; what else there is is
 * noted as left out.  That writing failed is the writer's to tell.
 */
void embedding_put(struct embedding *e, pid_t pid, struct mpf_writer *w, const uint64_t *pc,
		   uint64_t n);

/* Says what there is and what was left out. */
void embedding_tell(const struct embedding *e);
void embedding_free(struct embedding *e);

#endif
