/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/notices.h"

/* Writes the progress of each second from 0 to @seconds.  Return: lines that were written. */
static int lines_of(const struct notices *n, unsigned int seconds)
{
	struct recorder_progress p = {0};
	int fd = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO), lines = 0;
	char text[4096] = "";

	dup2(fd, STDERR_FILENO);
	for (unsigned int s = 0; s <= seconds; s++) {
		p.duration_ns = s * 1000000000ull + 400;
		n->progress(n->ctx, &p, false);
	}
	dup2(old, STDERR_FILENO);
	close(old);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	close(fd);
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		lines++;
	return lines;
}

/* Progress that is not for a terminal is one line a minute; the next recording begins anew. */
static void line_a_minute(void **state)
{
	(void)state;
	assert_int_equal(lines_of(notices_printed(false), 59), 0);
	assert_int_equal(lines_of(notices_printed(false), 61), 1);
	assert_int_equal(lines_of(notices_printed(false), 599), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(line_a_minute)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
