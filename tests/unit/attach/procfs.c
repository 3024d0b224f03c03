/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/procfs.h"

static void maps_of_a_living_one(void **state)
{
	struct maps maps;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	assert_non_null(maps_find(&maps, (uint64_t)(uintptr_t)maps_of_a_living_one));
	maps_free(&maps);
}

/* It is still there for its parent, but its maps are an empty file. */
static void maps_of_an_ended_one(void **state)
{
	struct maps maps;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(maps_read(pid, &maps), -ESRCH);
	assert_int_equal(maps.list.n, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(maps_read(pid, &maps), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(maps_of_a_living_one),
	    cmocka_unit_test(maps_of_an_ended_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
