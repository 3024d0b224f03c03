/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/own_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK	   65536u
#define OUTPUT	   3
#define CANNOT_RUN 127

/* ------------------------------------------------------------------ child -- */

/* Makes @fd the descriptor @number of the command. */
static bool give(int fd, int number)
{
	/* One that has this number already would be closed by execv(). */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, OUTPUT + 1);
	return fd >= 0 && dup2(fd, number) == number;
}

/* What the server itself reads is limited, not what its commands read. */
static void unlimit(void)
{
	struct rlimit data;

	if (getrlimit(RLIMIT_DATA, &data))
		return;
	data.rlim_cur = data.rlim_max;
	setrlimit(RLIMIT_DATA, &data);
}

static void become(const char *const *argv, int output, int said, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* memprof leaves the process that it inspects as it was when it ends by this signal. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	unlimit();
	if (getppid() == parent && give(output, OUTPUT) && give(said, STDERR_FILENO) &&
	    give(null, STDOUT_FILENO) && give(null, STDIN_FILENO)) {
		close_range(OUTPUT + 1, ~0u, 0);
		execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
	}
	_exit(CANNOT_RUN);
}

/* ------------------------------------------------------------------ parent -- */

/* Return: 0 when the command has written all, or a negative errno. */
static int pass_on(int from, FILE *out, uint64_t *bytes)
{
	char *block = malloc(BLOCK);
	ssize_t n = 0;

	if (!block)
		return -ENOMEM;
	do {
		n = read(from, block, BLOCK);
		if (n > 0 && fwrite(block, 1, (size_t)n, out) != (size_t)n)
			break;
		*bytes += n > 0 ? (uint64_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	free(block);
	return n ? -EIO : 0;
}

/* Takes the last line of a file, as far as it has room for it, without "memprof: ". */
static void take_last_line(int fd, char *line, size_t room)
{
	static const char name[] = "memprof: ";
	char text[4096];
	off_t size = lseek(fd, 0, SEEK_END), from = size - (off_t)sizeof(text) + 1;
	ssize_t n = pread(fd, text, sizeof(text) - 1, from > 0 ? from : 0);
	char *last;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = 0;
	last = strrchr(text, '\n');
	last = last ? last + 1 : text;
	if (!strncmp(last, name, sizeof(name) - 1))
		last += sizeof(name) - 1;
	snprintf(line, room, "%.*s", (int)room - 1, last);
}

static int run_child(const char *const *argv, FILE *out, const int *pipe, int said,
		     struct own_command_end *end)
{
	pid_t self = getpid(), pid = fork();
	int ret, error = errno;

	if (!pid)
		become(argv, pipe[1], said, self);
	close(pipe[1]);
	if (pid < 0)
		return -error;
	ret = pass_on(pipe[0], out, &end->bytes);
	if (ret)
		kill(pid, SIGTERM);
	while (waitpid(pid, &end->status, 0) < 0 && errno == EINTR)
		;
	if (!ret && WIFEXITED(end->status) && WEXITSTATUS(end->status) == CANNOT_RUN)
		ret = -ENOEXEC;
	take_last_line(said, end->said, sizeof(end->said));
	return ret;
}

int own_command_run(const char *const *argv, FILE *out, struct own_command_end *end)
{
	int said = memfd_create("memprof-stderr", MFD_CLOEXEC), ends[2], ret;

	*end = (struct own_command_end){0};
	if (said < 0 || pipe2(ends, O_CLOEXEC)) {
		ret = -errno;
	} else {
		ret = run_child(argv, out, ends, said, end);
		close(ends[0]);
	}
	if (said >= 0)
		close(said);
	return ret;
}
