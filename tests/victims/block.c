/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Not a victim, but a tool for the tests: reads the session block of process PID and prints what
 * the agent has counted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "formats/session.h"

static const struct ss_control *open_block(const char *pid)
{
	char path[64], line[512];
	unsigned long low, high;
	FILE *maps;
	void *p;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "r");
	if (!maps)
		return NULL;
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, SS_NAME) || sscanf(line, "%lx-%lx", &low, &high) != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/map_files/%lx-%lx", pid, low, high);
		p = mmap(NULL, high - low, PROT_READ, MAP_SHARED, open(path, O_RDWR), 0);
		return p == MAP_FAILED ? NULL : p;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct ss_control *c = argc > 1 ? open_block(argv[1]) : NULL;
	unsigned long events = 0, stale = 0, resets = 0;

	if (!c)
		return 1;
	for (uint32_t i = 0; i < c->nslots; i++) {
		const struct ss_thread *t =
		    (const void *)((const char *)c + c->slots + i * c->slot_stride);

		for (int k = 0; k < MPR_LOST_KINDS; k++) {
			events += t->written[k];
			stale += t->stale[k];
		}
		resets += t->resets;
	}
	printf("{\"state\": %u, \"events\": %lu, \"stale\": %lu, \"resets\": %lu, "
	       "\"may_syscall\": %u}\n",
	       ((const struct ss_journal *)((const char *)c + c->journal))->state, events, stale,
	       resets, c->may_syscall);
	return 0;
}
