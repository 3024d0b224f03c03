/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The servers that DEBUGINFOD_URLS names.  libdw asks them by itself, without a limit in time, whenever
 * it searches for a debug file, so memprof removes the variable from its own environment.
 */
#ifndef LIB_DEBUGINFOD_URLS_H
#define LIB_DEBUGINFOD_URLS_H

/* Reads the variable and removes it.  To be called once, before the first thread starts. */
void debuginfod_urls_take(void);
/* Puts it back: for a program that memprof starts. */
void debuginfod_urls_restore(void);

enum debuginfod_ask {
	DEBUGINFOD_IF_SET, /* the servers that the variable names */
	DEBUGINFOD_ALWAYS, /* the default server if it names none */
	DEBUGINFOD_NEVER,
};
/* It forwards queries to the servers of the distributions. */
#define DEBUGINFOD_DEFAULT "https://debuginfod.elfutils.org/"

/* Return: the servers to ask, separated by blanks; NULL: none. */
const char *debuginfod_urls(enum debuginfod_ask ask);

#endif
