/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* /proc/PID/maps.  A process can have 65,530 mappings (vm.max_map_count) and more. */
#ifndef ATTACH_PROC_MAPS_H
#define ATTACH_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"
#include "lib/vec.h"

struct map {
	uint64_t start, end, offset, ino;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	const char *path; /* as in maps, "" if none; " (deleted)" is kept */
};
struct maps {
	VEC(struct map) list; /* sorted by address */
	char *text;	      /* holds the strings of the paths */
};

/* Parses the text of /proc/PID/maps in one pass.  Return: 0 with @maps to be freed, or
 * -EINVAL/-ENOMEM with @maps empty. */
__must_check int maps_parse(const char *text, struct maps *maps);
/* Reads and parses the maps of @pid.  The kernel needs about 0.35 ms for each 1,000 mappings, the
 * parser a tenth of that; while all threads are stopped use target_maps(), which reads them only
 * once.
 * Return: 0, -ESRCH (also if the process has lost its memory because it ended or executed another
 * program in the meantime), -EACCES, ... */
__must_check int maps_read(pid_t pid, struct maps *maps);
void maps_free(struct maps *maps);
/* Return: the map that contains @addr, or NULL.  Binary search. */
const struct map *maps_find(const struct maps *maps, uint64_t addr);

#endif
