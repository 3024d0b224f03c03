/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shows the least that a profiler with uprobes costs: probes on malloc and free that only count.
 * uprobe MALLOC-OFFSET FREE-OFFSET LIBRARY PROGRAM ARGUMENTS...  (perf_event_open(2), uprobe PMU)
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int probe(const char *library, uint64_t offset, pid_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 0};
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	unsigned int type;

	if (!f || fscanf(f, "%u", &type) != 1)
		return -1;
	fclose(f);
	attr.type = type;
	attr.uprobe_path = (uint64_t)(uintptr_t)library;
	attr.probe_offset = offset;
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	uint64_t count[2] = {0};
	int ready[2], fd[2], status;
	char byte = 0;
	pid_t pid;

	if (argc < 5 || pipe(ready))
		return 2;
	pid = fork();
	if (pid == 0) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) == 1)
			execv(argv[4], argv + 4);
		_exit(127);
	}
	for (int i = 0; i < 2; i++) {
		fd[i] = probe(argv[3], strtoull(argv[1 + i], NULL, 0), pid);
		if (fd[i] < 0) {
			perror("uprobe");
			return 1;
		}
	}
	if (write(ready[1], &byte, 1) != 1 || waitpid(pid, &status, 0) != pid)
		return 1;
	for (int i = 0; i < 2; i++) {
		if (read(fd[i], &count[i], 8) != 8)
			return 1;
	}
	fprintf(stderr, "uprobe: %lu and %lu hits\n", count[0], count[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
