/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* /proc/PID/maps.  A process may have 65,530 mappings (vm.max_map_count) and more. */
#ifndef ATTACH_MAPS_H
#define ATTACH_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"
#include "lib/vec.h"

struct map {
	uint64_t start, end, offset, ino;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	const char *path; /* as in maps, "" if none; " (deleted)" kept */
};
struct maps {
	VEC(struct map) list; /* by address */
	char *text;	      /* the paths lie in it */
};

/* Parses the text of /proc/PID/maps, looking once at each byte.  Return: 0 with @maps to be freed,
 * or -EINVAL/-ENOMEM, @maps then empty. */
__must_check int maps_parse(const char *text, struct maps *maps);
/* Reads and parses the maps of @pid.  The kernel takes about 0.35 ms for each 1,000 mappings, and
 * the parser a tenth of that: where all threads are stopped, target_maps() reads them only once.
 * Return: 0, -ESRCH (also when it has no memory any more: it ended or ran another program
 * meanwhile), -EACCES, ... */
__must_check int maps_read(pid_t pid, struct maps *maps);
void maps_free(struct maps *maps);
/* Return: the map that contains @addr, or NULL; in logarithmic time. */
const struct map *maps_find(const struct maps *maps, uint64_t addr);

#endif
