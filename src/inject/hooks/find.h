/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the functions of a target to hook: every definition in every mapped module. */
#ifndef INJECT_HOOKS_FIND_H
#define INJECT_HOOKS_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/proc/procfs.h"
#include "attach/target.h"
#include "formats/session.h"
#include "lib/check.h"
#include "lib/err.h"
#include "lib/vec.h"

struct planned_hook {
	char name[40];	    /* symbol */
	char module[64];    /* basename of its file */
	const char *owner;  /* name of the sanitizer that the allocator belongs to; NULL: none */
	uint64_t addr, end; /* of the function, in the target */
	uint64_t bias;
	uint8_t kind, size_kind; /* enum ss_hook_kind, enum ss_size_kind */
	uint8_t code_bits;	 /* code bits of its symbol (struct arch) */
	bool glibc_chunks;
	bool gone;	       /* its module was unloaded */
	int sibling;	       /* index of the nothrow variant; -1: none */
	uint64_t sibling_addr; /* address of the nothrow variant if that is not hooked, else 0 */
	uint64_t rseq_list,
	    rseq_length; /* the module's restartable sequences, inject/hooks/rseq.h */
	uint64_t map_start, map_end, map_offset, ino;
	uint64_t own_start, own_end; /* code whose frees can be of blocks that were freed before */
	uint32_t dev_major, dev_minor;
};

struct hook_plan {
	VEC(struct planned_hook) hooks;
	VEC(uint64_t) free_slots; /* GOT words through which modules call some free() */
	char allocators[200];	  /* e.g. "glibc, jemalloc" */
	char refused[400];	  /* what could not be hooked and why; "" if nothing */
	char nameless[64];	  /* a file with code but no function symbols; "": none */
};

/**
 * hook_plan_make() - search all modules of @t that are mapped according to @maps
 * @known: earlier plan; functions it has are left out (NULL: none)
 *
 * Changes nothing; reads the modules' files and their text in the target's memory.
 * Return: 0 with @plan filled (the caller frees it by hook_plan_free()), or a negative errno.
 */
__must_check int hook_plan_make(struct target *t, const struct maps *maps,
				const struct hook_plan *known, struct hook_plan *plan,
				struct mp_err *err);
/* Does the function only forward to another planned one of the same kind (by a direct call or jump,
 * also through the PLT)?  Then the other one's hook sees the call. */
bool hook_calls_hooked(struct target *t, const struct hook_plan *plan,
		       const struct planned_hook *h);
/* Removes hook number @i from the plan. */
void hook_plan_drop(struct hook_plan *plan, size_t i);
void hook_plan_free(struct hook_plan *plan);

#endif
