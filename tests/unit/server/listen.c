/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "server/listen.h"

static void expect(const char *interface, const char *address, bool loopback)
{
	struct mp_err err = {0};
	struct listener l = {0};
	char url[80];

	assert_int_equal(listen_open(interface, 0, &l, &err), 0);
	assert_int_not_equal(l.port, 0);
	snprintf(url, sizeof(url), "http://%s:%u", address, l.port);
	assert_string_equal(l.url, url);
	assert_int_equal(l.loopback, loopback);
	close(l.fd);
}

static void addresses(void **state)
{
	(void)state;
	expect("127.0.0.1", "127.0.0.1", true);
	expect("localhost", "127.0.0.1", true);
	expect("127.1.2.3", "127.1.2.3", true);
	expect("0.0.0.0", "0.0.0.0", false);
	if (access("/proc/net/if_inet6", R_OK))
		return;
	expect("::1", "[::1]", true);
	expect("::", "[::]", false);
	/* All addresses of this kind are outside, which at worst asks for a token too often. */
	expect("::ffff:127.0.0.1", "[::ffff:127.0.0.1]", false);
}

static void refuse(const char *interface, uint16_t port, int code, const char *says)
{
	struct mp_err err = {0};
	struct listener l = {0};

	assert_int_equal(listen_open(interface, port, &l, &err), code);
	if (!strstr(err.what, says))
		fail_msg("'%s' does not say '%s'", err.what, says);
}

static void refusals(void **state)
{
	struct mp_err err = {0};
	struct listener l = {0};

	(void)state;
	refuse("", 0, -EINVAL, "--interface");
	refuse("eth0", 0, -EINVAL, "--interface: 'eth0'");
	refuse("127.0.0.1:80", 0, -EINVAL, "--interface");
	refuse("[::1]", 0, -EINVAL, "--interface");
	refuse("192.0.2.1", 0, -EADDRNOTAVAIL, "192.0.2.1");
	assert_int_equal(listen_open("127.0.0.1", 0, &l, &err), 0);
	refuse("127.0.0.1", l.port, -EADDRINUSE, "--port N chooses another");
	close(l.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(refusals)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
