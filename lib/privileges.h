/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a thread of memprof may do once it has what it needs. */
#ifndef LIB_PRIVILEGES_H
#define LIB_PRIVILEGES_H

enum privileges {
	PRIVILEGES_NONE,   /* works on memory and descriptors only */
	PRIVILEGES_TARGET, /* looks at the target while it records, and detaches at the end:
			      CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_NICE (short stops:
			      lib/priority.h) and CAP_CHECKPOINT_RESTORE (files of mappings;
			      CAP_SYS_ADMIN on kernels that do not have it) */
	PRIVILEGES_FILES,  /* looks at the target, and creates files where memprof may:
			      CAP_DAC_OVERRIDE instead of CAP_SYS_NICE */
};

/**
 * privileges_keep() - give up every other capability, for good
 *
 * Of the calling thread only (capabilities(7)); also sets no_new_privs.  What it never had it does
 * not get.
 * Return: 0, or -EPERM if that failed.
 */
int privileges_keep(enum privileges p);

#endif
