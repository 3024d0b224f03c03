/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include "arch/arch.h"
#include "attach/seccomp.h"

/* Arguments of an anonymous mmap(), as in memprof's query. */
static const uint64_t args[6] = {0x10000, 4096, PROT_READ, MAP_PRIVATE, UINT64_MAX, 0};

/* Return: the verdict of a filter that allows calls whose fifth argument has only 32 bits. */
static uint32_t verdict(const struct seccomp_data *data)
{
	const unsigned int upper = 4 * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	const struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4]) + upper),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};

	return seccomp_run(code, sizeof(code) / sizeof(code[0]), data);
}

static void arguments_of_32_bits(void **state)
{
	struct seccomp_data data = seccomp_call(&arch_arm, 192, args, 0x8000);

	(void)state;
	assert_int_equal(data.arch, AUDIT_ARCH_ARM);
	assert_true(data.args[0] == 0x10000);
	assert_true(data.args[4] == 0xffffffff);
	assert_int_equal(verdict(&data), SECCOMP_RET_ALLOW);
}

static void arguments_of_64_bits(void **state)
{
	struct seccomp_data data = seccomp_call(&arch_aarch64, 222, args, 0x8000);

	(void)state;
	assert_int_equal(data.arch, AUDIT_ARCH_AARCH64);
	assert_true(data.instruction_pointer == 0x8004);
	assert_true(data.args[4] == UINT64_MAX);
	assert_int_equal(verdict(&data), SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(arguments_of_32_bits),
	    cmocka_unit_test(arguments_of_64_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
