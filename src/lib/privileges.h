/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drops the capabilities of a thread of memprof that it no longer needs. */
#ifndef LIB_PRIVILEGES_H
#define LIB_PRIVILEGES_H

enum privileges {
	PRIVILEGES_NONE, /* uses only memory and open descriptors */
	/* Reads the target's state while recording, and detaches at the end: CAP_SYS_PTRACE,
	 * CAP_DAC_READ_SEARCH, CAP_SYS_NICE (short stops: lib/priority.h) and
	 * CAP_CHECKPOINT_RESTORE (files of mappings; CAP_SYS_ADMIN on kernels that do not have
	 * it).  If memprof has no CAP_SYS_PTRACE: all that it has */
	PRIVILEGES_TARGET,
	/* Reads the target's state, and creates files in any directory: CAP_DAC_OVERRIDE instead
	 * of CAP_SYS_NICE */
	PRIVILEGES_FILES,
};

/**
 * privileges_keep() - permanently drop all other capabilities
 *
 * Affects only the calling thread (capabilities(7)), and sets no_new_privs.  Does not add
 * capabilities.
 * Return: 0, or -EPERM if that failed.
 */
int privileges_keep(enum privileges p);

#endif
