/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "attach/refusal.h"

static struct mp_err said;

static void expect(const struct refusal *r, enum mp_exit status, const char *text)
{
	memset(&said, 0, sizeof(said));
	assert_int_equal(refusal_explain(r, &said), r->error);
	assert_int_equal(said.exit, status);
	if (!strstr(said.what, text))
		fail_msg("'%s' does not say '%s'", said.what, text);
}

/* The message names every setting of kernel.yama.ptrace_scope, and what helps. */
static void yama(void **state)
{
	struct proc_status st = {.name = "x", .uid = 1000};
	struct refusal r = {.pid = 7, .target = &st, .error = -EPERM, .uid = 1000};

	(void)state;
	expect(&r, MP_EXIT_PERMISSION, "not dumpable");
	r.scope = 1;
	expect(&r, MP_EXIT_PERMISSION, "ptrace_scope is 1: without CAP_SYS_PTRACE only parents");
	assert_non_null(strstr(said.what, "sysctl kernel.yama.ptrace_scope=0"));
	r.scope = 2;
	expect(&r, MP_EXIT_PERMISSION, "ptrace_scope is 2: no process may attach without CAP");
	r.scope = 3;
	expect(&r, MP_EXIT_PERMISSION, "until the next boot");
	r.may_ptrace = true;
	expect(&r, MP_EXIT_PERMISSION, "until the next boot");
	r.scope = 2;
	expect(&r, MP_EXIT_PERMISSION,
	       "attaching to process 7 (x) is not permitted: Operation not permitted");
}

static void others(void **state)
{
	struct proc_status st = {.name = "x", .uid = 1000};
	struct refusal r = {.pid = 7, .target = &st, .error = -EACCES, .uid = 1001, .scope = 1};

	(void)state;
	expect(&r, MP_EXIT_PERMISSION, "belongs to uid 1000 and memprof runs as uid 1001");
	r.may_ptrace = r.other_userns = true;
	expect(&r, MP_EXIT_PERMISSION, "another user namespace");
	r.error = -ESRCH;
	expect(&r, MP_EXIT_NO_PROCESS, "process 7 has ended");
	r.error = -EMFILE;
	expect(&r, MP_EXIT_NO_ROOM, "RLIMIT_NOFILE");
	r.error = -ENOMEM;
	expect(&r, MP_EXIT_FAILURE, "Cannot allocate memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(yama), cmocka_unit_test(others)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
