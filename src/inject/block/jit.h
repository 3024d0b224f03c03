/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that a program generates at run time: does all of it keep a frame pointer? */
#ifndef INJECT_BLOCK_JIT_H
#define INJECT_BLOCK_JIT_H

#include <libelf.h>
#include <stdbool.h>
#include <sys/types.h>

/* What is known about a program; zero: nothing. */
struct jit {
	bool has_v8;	  /* all V8 frames, also interpreted and built in, are linked */
	bool has_hotspot; /* HotSpot's compiled code uses the register freely ... */
	bool told;	  /* ... unless -XX:+PreserveFramePointer is given */
};

/* Evaluates the arguments that the process was started with. */
void jit_note_process(struct jit *jit, pid_t pid);
/* Checks whether a mapped file contains HotSpot, or contains or uses V8. */
void jit_note_file(struct jit *jit, Elf *elf, const char *path);

static inline bool jit_keeps_fp(const struct jit *jit)
{
	return jit->told || (jit->has_v8 && !jit->has_hotspot);
}

#endif
