/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files in which the recorded process names the code that it generates: its perf map, and its
 * jitdump if it has mapped one, as perf requires. */
#ifndef CONTROL_JIT_H
#define CONTROL_JIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "unwind/symbols/symbols.h"

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

/* Finds where the files of a process are. */
void jit_files_open(struct jit_files *f, pid_t pid);
void jit_files_close(struct jit_files *f);
/**
 * jit_files_name() - name those of the addresses that are in no file of @symbols
 * @dump: path of the jitdump that the process has mapped, or NULL
 * @n: NULL: reports nothing
 */
void jit_files_name(const struct jit_files *f, const char *dump, struct symbols *symbols,
		    const uint64_t *pc, uint64_t count, const struct notices *n);
/* Return: whether this is the path of a jitdump of the process. */
bool jit_files_is_dump(const struct jit_files *f, const char *path);

/* Notes what the process has written so far.  To be called before anything is recorded.  Takes
 * rec->lock. */
void recording_note_jit(struct recording *rec);
/* As jit_files_name(), for the recorded process.  Takes rec->lock. */
void recording_name_jit(struct recording *rec, struct symbols *symbols, const uint64_t *pc,
			uint64_t count, const struct notices *n);

#endif
