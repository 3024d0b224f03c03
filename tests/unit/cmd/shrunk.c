/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/heap/shrunk.h"

/* Reads of a mapped file after the place where it was truncated return zeros. */
static void reads_as_zeros(void **state)
{
	int fd = memfd_create("shrunk", MFD_CLOEXEC);
	volatile unsigned char *p;

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(pwrite(fd, "y", 1, 3 * 4096), 1);
	p = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(p[3 * 4096], 'y');
	assert_int_equal(ftruncate(fd, 4096), 0);
	survive_shrunk_files();
	assert_int_equal(p[0], 'x');
	assert_int_equal(p[3 * 4096], 0);
	assert_int_equal(p[4096 + 17], 0);
	munmap((void *)p, 4 * 4096);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_as_zeros)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
