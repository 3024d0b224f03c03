/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proofs and frames are those of doc/streaming.md: the expected bytes are computed by Python's hmac. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "lib/hex.h"
#include "stream/wire.h"

static const struct token token = {16, "0123456789abcdef"};

/* With the random bytes 0, 1, ... 63 */
static void make_hellos(uint8_t hellos[2 * WIRE_HELLO])
{
	assert_int_equal(wire_hello(WIRE_SENDER, hellos), 0);
	assert_int_equal(wire_hello(WIRE_RECEIVER, hellos + WIRE_HELLO), 0);
	for (uint8_t i = 0; i < 64; i++)
		hellos[(i < 32 ? 16 : WIRE_HELLO - 16) + i] = i;
}

static void assert_hex(const uint8_t *bytes, size_t n, const char *expected)
{
	char text[256];

	assert_string_equal(hex_text(bytes, n, text), expected);
}

static void test_proofs(void **state)
{
	uint8_t hellos[2 * WIRE_HELLO], proof[WIRE_PROOF];

	(void)state;
	make_hellos(hellos);
	wire_proof(&token, WIRE_SENDER, hellos, proof);
	assert_hex(proof, sizeof(proof),
		   "ec3fa4ca5cf9ae9f39ac747676b36d6bb965c9bbd265318abfb98ef31e90fa4c");
	wire_proof(&token, WIRE_RECEIVER, hellos, proof);
	assert_hex(proof, sizeof(proof),
		   "b2c3e71151096331065901f8bbc6cc93bf2c03ce3764688ea2354150dd3943be");
}

static void test_hello(void **state)
{
	uint8_t hello[WIRE_HELLO], other[WIRE_HELLO];

	(void)state;
	assert_int_equal(wire_hello(WIRE_SENDER, hello), 0);
	assert_true(wire_hello_ok(WIRE_SENDER, hello));
	assert_false(wire_hello_ok(WIRE_RECEIVER, hello));
	assert_int_equal(wire_hello(WIRE_SENDER, other), 0);
	assert_memory_not_equal(hello, other, sizeof(hello));
	hello[8] = 2; /* the version */
	assert_false(wire_hello_ok(WIRE_SENDER, hello));
}

static size_t make_frame(uint8_t *out, struct wire_direction *d)
{
	uint8_t hellos[2 * WIRE_HELLO];

	make_hellos(hellos);
	wire_direction_begin(d, &token, WIRE_SENDER, hellos);
	return wire_put(d, out, WIRE_DATA, 7, "hello", 5);
}

static void test_frame(void **state)
{
	struct wire_direction out, in;
	uint8_t frame[64], unused[64];
	struct wire_frame f;
	size_t n = make_frame(frame, &out);

	(void)state;
	assert_hex(frame, n,
		   "0200000005000000000000000700000000000000"
		   "68656c6c6fc0291ae68acf026179d24f960fa1ad1a");
	make_frame(unused, &in);
	in.number = 0;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(wire_get(&in, frame, i, &f), 0);
	assert_int_equal(wire_get(&in, frame, n, &f), n);
	assert_int_equal(f.type, WIRE_DATA);
	assert_int_equal(f.length, 5);
	assert_int_equal(f.offset, 7);
	assert_memory_equal(f.payload, "hello", 5);
	/* The same frame again has the number of an earlier one. */
	assert_int_equal(wire_get(&in, frame, n, &f), -EPROTO);
}

static void test_changed(void **state)
{
	struct wire_direction out, in;
	uint8_t frame[64], unused[64];
	struct wire_frame f;
	size_t n = make_frame(frame, &out);

	(void)state;
	for (size_t i = 0; i < 8 * n; i++) {
		uint8_t bad[64];

		memcpy(bad, frame, n);
		bad[i / 8] ^= (uint8_t)(1 << i % 8);
		make_frame(unused, &in);
		in.number = 0;
		/* A longer length waits for more. */
		assert_true(wire_get(&in, bad, n, &f) <= 0);
		assert_int_equal(in.number, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_proofs),
	    cmocka_unit_test(test_hello),
	    cmocka_unit_test(test_frame),
	    cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests_name("stream/wire", tests, NULL, NULL);
}
