/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fetches debug information from debuginfod servers, with libdebuginfod, which also keeps what it
 * downloaded: in the cache that gdb and others use, too (debuginfod_find_debuginfo(3)).
 *
 * The library is opened when the first file is asked for: memprof does not need it otherwise.  A
 * query can take long, so it may only be made while no process waits for memprof.
 */
#ifndef UNWIND_SYMBOLS_DEBUGINFOD_H
#define UNWIND_SYMBOLS_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod;

/* Called now and then while a file is downloaded.  @total: bytes; 0: not known yet */
typedef void debuginfod_progress_fn(void *ctx, uint64_t done, uint64_t total);

/* @urls: separated by blanks; valid as long as the result.  @progress: NULL: none.
 * Return: NULL when out of memory. */
struct debuginfod *debuginfod_new(const char *urls, debuginfod_progress_fn *progress, void *ctx);
void debuginfod_free(struct debuginfod *d);

/**
 * debuginfod_fetch() - ask for the debug information of a file
 * @id, @n: its build id
 * @path: on success set to the path of the debug file; to be freed
 *
 * Each build id is asked for once.  A file with another build id is not used.  After a failure no
 * more files are asked for, also when a signal that would end memprof is pending.  Sets
 * DEBUGINFOD_URLS meanwhile: no other thread may read the environment.
 * Return: a descriptor, or a negative errno.
 */
int debuginfod_fetch(struct debuginfod *d, const uint8_t *id, size_t n, char **path);

struct debuginfod_result {
	uint32_t wanted, found; /* number of files */
	uint32_t wrong;		/* answers with another build id */
	uint64_t bytes;		/* downloaded; the rest was in the cache */
	const char *failure;	/* why no more files were asked for; NULL: nothing failed */
};
/* The strings are valid as long as @d. */
struct debuginfod_result debuginfod_result(const struct debuginfod *d);

#endif
