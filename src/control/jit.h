/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files in which the recorded process names the code that it generates: its perf map, and its
 * jitdump if it has mapped one, as perf requires. */
#ifndef CONTROL_JIT_H
#define CONTROL_JIT_H

#include <stdint.h>
#include <sys/types.h>
#include "unwind/symbols.h"

struct notices;
struct recording;

/* A file as it was when the recording began. */
struct jit_file {
	dev_t dev;
	ino_t ino;
	uint64_t bytes; /* 0: there was none */
};

struct jit_files {
	int root;      /* descriptor of the target's root directory, or negative */
	pid_t pid;     /* of the target in its own namespace: part of the names */
	uint32_t uid;  /* the files' owner */
	int64_t begun; /* when the process began, Unix seconds */
	struct jit_file map, dump;
};

/* Notes what the process has written so far.  To be called before anything is recorded.  Takes
 * rec->lock. */
void recording_note_jit(struct recording *rec);
/* Names those of the addresses that no file of @symbols has a name for.  @n: NULL: reports nothing.
 * Takes rec->lock. */
void recording_name_jit(struct recording *rec, struct symbols *symbols, const uint64_t *pc,
			uint64_t count, const struct notices *n);
void jit_files_close(struct jit_files *f);

#endif
