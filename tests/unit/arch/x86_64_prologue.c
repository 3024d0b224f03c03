/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Recognition without decoding: calls before an address, starts of functions, frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"

#define ADDR 0x10000ull

static bool is_call(const char *bytes, size_t n)
{
	uint8_t code[ARCH_MAX_CALL] = {0};

	memcpy(code + sizeof(code) - n, bytes, n);
	return arch_x86_64.unwind.ends_in_call(code, sizeof(code));
}

#define CALLS(bytes) assert_true(is_call(bytes, sizeof(bytes) - 1))
#define OTHER(bytes) assert_false(is_call(bytes, sizeof(bytes) - 1))

static void calls(void **state)
{
	(void)state;
	CALLS("\xe8\x01\x02\x03\x04");	       /* call rel32 */
	CALLS("\xff\xd0");		       /* call *%rax */
	CALLS("\x41\xff\xd4");		       /* call *%r12 */
	CALLS("\xff\x10");		       /* call *(%rax) */
	CALLS("\xff\x14\xc8");		       /* call *(%rax,%rcx,8) */
	CALLS("\xff\x55\x08");		       /* call *8(%rbp) */
	CALLS("\xff\x54\x24\x08");	       /* call *8(%rsp) */
	CALLS("\xff\x15\x01\x02\x03\x04");     /* call *x(%rip) */
	CALLS("\xff\x90\x01\x02\x03\x04");     /* call *x(%rax) */
	CALLS("\xff\x94\x24\x01\x02\x03\x04"); /* call *x(%rsp) */
	CALLS("\xff\x14\xc5\x01\x02\x03\x04"); /* call *x(,%rax,8) */
	OTHER("\xe9\x01\x02\x03\x04");	       /* jmp */
	OTHER("\xff\xe0");		       /* jmp *%rax */
	OTHER("\xff\x70\x08");		       /* push 8(%rax) */
	OTHER("\xff\xd0\x90");		       /* call *%rax; nop */
	OTHER("\x48\x89\xe5");		       /* mov %rsp,%rbp */
}

/* Three functions: one sets up its frame late, one has no padding before it, one has no frame and
 * follows a return and a nop. */
static const uint8_t text[] = {
    0x48, 0x85, 0xff,					  /* 00: test %rdi,%rdi */
    0x74, 0x0a,						  /* 03: je */
    0x55, 0x48, 0x89, 0xe5,				  /* 05: push %rbp; mov %rsp,%rbp */
    0xe8, 0x02, 0x00, 0x00, 0x00,			  /* 09: call 10 */
    0x5d, 0xc3,						  /* 0e: pop %rbp; ret */
    0x55, 0x48, 0x8b, 0xec,				  /* 10: push %rbp; mov %rsp,%rbp */
    0x48, 0x89, 0xc3,					  /* 14: mov %rax,%rbx: no return at 16 */
    0x0f, 0x1f, 0x84, 0x00, 0,				  /* 17: nopl */
    0,	  0,	0,    0x90,				  /* 1f: nop */
    0x5d, 0xc3,						  /* 20: pop %rbp; ret */
    0x66, 0x2e, 0x0f, 0x1f, 0x84,			  /* 22: nopw */
    0,	  0,	0,    0,    0,	  0x0f, 0x1f, 0x40, 0x00, /* 2c: nopl */
    0x48, 0x83, 0xec, 0x08,				  /* 30: sub $8,%rsp */
    0xc3, 0xcc, 0xcc, 0xcc, 0xcc,			  /* 34: ret, padding */
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xc3,	  /* 40: ret */
};

struct marks {
	bool start[sizeof(text)], frame[sizeof(text)];
};

static void mark(void *ctx, enum arch_mark what, uint64_t addr, uint64_t target)
{
	struct marks *m = ctx;

	(void)target;
	assert_in_range(addr, ADDR, ADDR + sizeof(text) - 1);
	if (what == ARCH_MARK_FRAME)
		m->frame[addr - ADDR] = true;
	else
		m->start[addr - ADDR] = true;
}

static void frames(void **state)
{
	struct marks m = {{false}, {false}};

	(void)state;
	arch_x86_64.unwind.find_frames(text, sizeof(text), ADDR, mark, &m);
	for (size_t i = 0; i < sizeof(text); i++) {
		assert_int_equal(m.start[i], i == 0x10 || i == 0x30 || i == 0x40);
		assert_int_equal(m.frame[i], i == 0x09 || i == 0x14);
	}
}

/* Operands contain bytes that look like calls and padding. */
static void operands(void **state)
{
	static const uint8_t code[] = {
	    0x55, 0x48, 0x89, 0xe5,					/* 00: as above */
	    0x83, 0xbf, 0xe8, 0x00, 0x00, 0x00, 0x00,			/* 04: cmpl $0,0xe8(%rdi) */
	    0x49, 0xb8, 0xcd, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, /* 0b: movabs */
	    0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90,			/* 15: pop %rbp; ret */
	};
	struct marks m = {{false}, {false}};

	(void)state;
	arch_x86_64.unwind.find_frames(code, sizeof(code), ADDR, mark, &m);
	for (size_t i = 0; i < sizeof(code); i++)
		assert_int_equal(m.start[i], i == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(calls), cmocka_unit_test(frames),
					   cmocka_unit_test(operands)};

	return cmocka_run_group_tests_name("x86-64, prologues", tests, NULL, NULL);
}
