/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that a program makes while it runs: does all of it keep a frame pointer? */
#ifndef INJECT_JIT_H
#define INJECT_JIT_H

#include <libelf.h>
#include <stdbool.h>
#include <sys/types.h>

/* What is known of a program; zero: nothing. */
struct jit {
	bool has_v8;	  /* its frames, compiled, interpreted or built in, are all linked */
	bool has_hotspot; /* compiled code uses the register as it likes ... */
	bool told;	  /* ... but with -XX:+PreserveFramePointer */
};

/* Notes the arguments that the process was started with. */
void jit_note_process(struct jit *jit, pid_t pid);
/* Notes a file that is mapped: which has V8 or HotSpot in it, or uses V8. */
void jit_note_file(struct jit *jit, Elf *elf, const char *path);

static inline bool jit_keeps_fp(const struct jit *jit)
{
	return jit->told || (jit->has_v8 && !jit->has_hotspot);
}

#endif
