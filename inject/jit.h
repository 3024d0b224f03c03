/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that a program makes while it runs: does all of it keep a frame pointer? */
#ifndef INJECT_JIT_H
#define INJECT_JIT_H

#include <libelf.h>
#include <stdbool.h>
#include <sys/types.h>

/* Is V8 in this file, or does it use V8?  All frames that V8 makes, compiled, interpreted or of its
 * built-in functions, are linked by the frame pointer. */
bool jit_is_v8(Elf *elf);

/* Was the program told to do so: is -XX:+PreserveFramePointer among its arguments (HotSpot)? */
bool jit_was_told(pid_t pid);

#endif
