/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"

#define AT 0x401000ull
#define NO 0ull

struct row {
	const char *text; /* assembly */
	const char *code;
	uint8_t length;
	enum arch_insn_kind kind;
	uint64_t target; /* NO: none */
};

static const struct row rows[] = {
    {"endbr64", "\xf3\x0f\x1e\xfa", 4, ARCH_INSN_LANDING_PAD, NO},
    {"push rbp", "\x55", 1, ARCH_INSN_PLAIN, NO},
    {"sub rsp, 0x1000", "\x48\x81\xec\0\x10\0\0", 7, ARCH_INSN_PLAIN, NO},
    {"mov rax, fs:0x28", "\x64\x48\x8b\x04\x25\x28\0\0\0", 9, ARCH_INSN_PLAIN, NO},
    {"movabs rax, imm64", "\x48\xb8\1\2\3\4\5\6\7\x08", 10, ARCH_INSN_PLAIN, NO},
    {"movabs al, [moffs64]", "\xa0\1\2\3\4\5\6\7\x08", 9, ARCH_INSN_PLAIN, NO},
    {"nop", "\x90", 1, ARCH_INSN_PLAIN, NO},
    {"mov rax, [rip+0x10]", "\x48\x8b\x05\x10\0\0\0", 7, ARCH_INSN_PC_RELATIVE, AT + 0x17},
    {"lea rax, [rip-7]", "\x48\x8d\x05\xf9\xff\xff\xff", 7, ARCH_INSN_PC_RELATIVE, AT},
    {"cmp byte [rip+0x100], 1", "\x80\x3d\0\1\0\0\1", 7, ARCH_INSN_PC_RELATIVE, AT + 0x107},
    {"movaps xmm0, [rip+0x20]", "\x0f\x28\x05\x20\0\0\0", 7, ARCH_INSN_PC_RELATIVE, AT + 0x27},
    {"lea eax, [eip+0x10]", "\x67\x8d\x05\x10\0\0\0", 7, ARCH_INSN_PC_RELATIVE, AT + 0x17},
    {"jmp rel8", "\xeb\x10", 2, ARCH_INSN_JUMP, AT + 0x12},
    {"jmp rel8 back", "\xeb\xfe", 2, ARCH_INSN_JUMP, AT},
    {"jmp rel32", "\xe9\0\0\0\xff", 5, ARCH_INSN_JUMP, AT + 5 - 0x1000000},
    {"bnd jmp rel32", "\xf2\xe9\0\0\0\1", 6, ARCH_INSN_JUMP, AT + 6 + 0x1000000},
    {"je rel8", "\x74\x20", 2, ARCH_INSN_COND_JUMP, AT + 0x22},
    {"jne rel32", "\x0f\x85\x20\0\0\0", 6, ARCH_INSN_COND_JUMP, AT + 0x26},
    {"jrcxz", "\xe3\x05", 2, ARCH_INSN_COND_JUMP, AT + 7},
    {"loop", "\xe2\x05", 2, ARCH_INSN_COND_JUMP, AT + 7},
    {"xbegin", "\xc7\xf8\x10\0\0\0", 6, ARCH_INSN_COND_JUMP, AT + 0x16},
    {"call rel32", "\xe8\0\1\0\0", 5, ARCH_INSN_CALL, AT + 0x105},
    {"jmp rax", "\xff\xe0", 2, ARCH_INSN_INDIRECT, NO},
    {"notrack jmp rax", "\x3e\xff\xe0", 3, ARCH_INSN_INDIRECT, NO},
    {"call rax", "\xff\xd0", 2, ARCH_INSN_INDIRECT, NO},
    {"jmp [rip+0x10]", "\xff\x25\x10\0\0\0", 6, ARCH_INSN_INDIRECT, AT + 0x16},
    {"ret", "\xc3", 1, ARCH_INSN_RETURN, NO},
    {"rep ret", "\xf3\xc3", 2, ARCH_INSN_RETURN, NO},
    {"ret 8", "\xc2\x08\0", 3, ARCH_INSN_RETURN, NO},
    {"syscall", "\x0f\x05", 2, ARCH_INSN_SYSCALL, NO},
    {"int 0x80", "\xcd\x80", 2, ARCH_INSN_SYSCALL, NO},
    {"int3", "\xcc", 1, ARCH_INSN_TRAP, NO},
    {"icebp", "\xf1", 1, ARCH_INSN_TRAP, NO},
    {"ud2", "\x0f\x0b", 2, ARCH_INSN_TRAP, NO},
    {"hlt", "\xf4", 1, ARCH_INSN_TRAP, NO},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const struct row *want = &rows[r];
		const uint8_t *code = (const uint8_t *)want->code;
		struct arch_insn i;

		if (!arch_x86_64.patch.decode(code, want->length, AT, &i))
			fail_msg("%s is not decoded", want->text);
		if (i.kind != want->kind || i.length != want->length)
			fail_msg("%s: kind %d length %d", want->text, i.kind, i.length);
		if (i.has_target != (want->target != NO) ||
		    (i.has_target && i.target != want->target))
			fail_msg("%s: target %#lx", want->text, (unsigned long)i.target);
		/* With a byte less it must not decode, or decode to a shorter instruction. */
		if (arch_x86_64.patch.decode(code, want->length - 1u, AT, &i) &&
		    i.length > want->length - 1)
			fail_msg("%s: read past its end", want->text);
	}
}

static void test_invalid(void **state)
{
	struct arch_insn i;

	(void)state;
	assert_false(arch_x86_64.patch.decode((const uint8_t *)"", 0, AT, &i));
	/* push es: only 32-bit */
	assert_false(arch_x86_64.patch.decode((const uint8_t *)"\x06", 1, AT, &i));
	assert_false(arch_x86_64.patch.decode((const uint8_t *)"\x48\x8b\x05\1", 4, AT, &i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
