/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The program of the process that memprof leaks or heap is about, for the names of files in text. */
#ifndef CMD_OPTIONS_PROGRAM_H
#define CMD_OPTIONS_PROGRAM_H

#include <sys/types.h>

/* Reads by which name the program of the process was called. */
void program_is_of(pid_t pid);
/* Return: library_name() of a file of that process; without a process, as in a core, its own name. */
const char *program_library(const char *path);
/* As program_library(), for the name of a file without its path. */
const char *program_file(const char *name);

#endif
