/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of A32 and Thumb-2 code: evaluates the copy as capstone decodes it and compares the
 * result with the original's.  Then relocates the allocators of Debian's armhf libraries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <capstone/capstone.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <unistd.h>
#include "arch/arch.h"

#define AT   0x10001000u
#define NEAR 0x10800000u
#define FAR  0x40000000u
#define BODY 96

struct machine {
	uint32_t reg[16];
	bool known[16];
	uint32_t loaded_from, jumped_to;
	bool loaded, jumped;
};

static uint32_t value_of(const struct machine *m, const cs_arm_op *op)
{
	int r = op->reg >= ARM_REG_R0 && op->reg <= ARM_REG_R12 ? (int)(op->reg - ARM_REG_R0) : 14;

	if (op->type == ARM_OP_IMM)
		return (uint32_t)op->imm;
	assert_true(m->known[r]);
	return m->reg[r];
}

static int number(unsigned int reg)
{
	return reg >= ARM_REG_R0 && reg <= ARM_REG_R12 ? (int)(reg - ARM_REG_R0) : 14;
}

/* Executes one instruction of a copy, if it is of a kind that the relocator writes. */
static void execute(struct machine *m, const cs_insn *i, const uint8_t *copy, uint32_t base,
		    bool thumb)
{
	const cs_arm *a = &i->detail->arm;
	const cs_arm_op *op = a->operands;
	uint32_t pc = (uint32_t)i->address + (thumb ? 4 : 8);

	if (i->id == ARM_INS_MOVW || (i->id == ARM_INS_MOV && op[1].type == ARM_OP_IMM)) {
		m->reg[number(op[0].reg)] = (uint32_t)op[1].imm;
		m->known[number(op[0].reg)] = true;
	} else if (i->id == ARM_INS_MOVT) {
		m->reg[number(op[0].reg)] =
		    (m->reg[number(op[0].reg)] & 0xffff) | (uint32_t)op[1].imm << 16;
	} else if (i->id == ARM_INS_ADD) {
		/* The destination is the first operand, or is omitted.  If an immediate has several
		 * encodings, its rotation is an operand, too. */
		bool rotated = a->op_count == 4;
		int last = a->op_count - 1 - rotated;
		uint32_t right = value_of(m, &op[last]), by = rotated ? (uint32_t)op[3].imm : 0;

		right = by ? right >> by | right << (32 - by) : right;
		m->reg[number(op[0].reg)] = value_of(m, &op[last - 1]) + right;
	} else if (i->id == ARM_INS_B) {
		m->jumped = true;
		m->jumped_to = (uint32_t)op[0].imm;
	} else if (op[a->op_count - 1].type == ARM_OP_MEM) {
		const arm_op_mem *mem = &op[a->op_count - 1].mem;

		if (mem->base == ARM_REG_PC) { /* ldr pc from a word after the code */
			uint32_t from = (pc & ~3u) + (uint32_t)mem->disp - base;

			assert_int_equal(op[0].reg, ARM_REG_PC);
			memcpy(&m->jumped_to, copy + from, 4);
			m->jumped_to &= ~1u;
			m->jumped = true;
		} else if (!m->loaded && m->known[number(mem->base)]) {
			m->loaded = true;
			m->loaded_from = m->reg[number(mem->base)] + (uint32_t)mem->disp;
			if (mem->index)
				m->loaded_from += m->reg[number(mem->index)];
		}
	}
}

static void run(struct machine *m, const struct arch_patch *p, uint32_t base, bool thumb)
{
	size_t size = p->relocated_length;
	const uint8_t *code = p->relocated;
	uint64_t addr = base;
	cs_insn *insn;
	csh handle;

	assert_int_equal(
	    cs_open(CS_ARCH_ARM, thumb ? CS_MODE_THUMB | CS_MODE_V8 : CS_MODE_ARM, &handle),
	    CS_ERR_OK);
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	while (!m->jumped && cs_disasm_iter(handle, &code, &size, &addr, insn))
		execute(m, insn, p->relocated, base, thumb);
	cs_free(insn, 1);
	cs_close(&handle);
	assert_true(m->jumped);
}

static enum arch_refusal plan_at(const void *head, size_t n, uint32_t at, uint32_t slot,
				 struct arch_patch *p)
{
	static const uint8_t fill16[] = {0x00, 0xbf}, fill32[] = {0x00, 0xf0, 0x20, 0xe3};
	uint8_t code[BODY];

	for (size_t i = 0; i < BODY; i += 4) {
		memcpy(code + i, at & 1 ? fill16 : fill32, 2);
		memcpy(code + i + 2, at & 1 ? fill16 : fill32 + 2, 2);
	}
	memcpy(code, head, n);
	return arch_arm.patch.plan(code, BODY, at, slot, slot + 48, p);
}

/* Single instructions, with islands near and far and both alignments: the copy must have the same
 * result as the instruction has at AT. */
static void test_forms(void **state)
{
	static const struct {
		uint32_t bits;
		uint8_t length, thumb, reg;
		bool load;
		int32_t distance; /* from the aligned pc; for adds from the pc */
		uint32_t index;	  /* value of the other register */
	} forms[] = {
	    {0x4b88, 2, 1, 3, true, 544, 0},			/* ldr r3, [pc, #544] */
	    {0xa310, 2, 1, 3, false, 64, 0},			/* adr r3, #64 */
	    {0xa380f8df, 4, 1, 10, true, 896, 0},		/* ldr.w sl, [pc, #896] */
	    {0xa380f85f, 4, 1, 10, true, -896, 0},		/* ldr.w sl, [pc, #-896] */
	    {0x3010f81f, 4, 1, 3, true, -16, 0},		/* ldrb r3, [pc, #-16] */
	    {0x3010f9bf, 4, 1, 3, true, 16, 0},			/* ldrsh r3, [pc, #16] */
	    {0x4504e9df, 4, 1, 4, true, 16, 0},			/* ldrd r4, r5, [pc, #16] */
	    {0x0510f20f, 4, 1, 5, false, 16, 0},		/* addw r5, pc, #16 */
	    {0x0510f2af, 4, 1, 5, false, -16, 0},		/* subw r5, pc, #16 */
	    {0xe59f3220, 4, 0, 3, true, 544, 0},		/* ldr r3, [pc, #544] */
	    {0xe51f3220, 4, 0, 3, true, -544, 0},		/* ldr r3, [pc, #-544] */
	    {0xe5df3010, 4, 0, 3, true, 16, 0},			/* ldrb r3, [pc, #16] */
	    {0xe1df31b0, 4, 0, 3, true, 16, 0},			/* ldrh r3, [pc, #16] */
	    {0xe1cf41d0, 4, 0, 4, true, 16, 0},			/* ldrd r4, [pc, #16] */
	    {0xe28f3c01, 4, 0, 3, false, 256, 0},		/* add r3, pc, #256 */
	    {0xe24f3c01, 4, 0, 3, false, -256, 0},		/* sub r3, pc, #256 */
	    {0xe08f3002, 4, 0, 3, false, 0x1234, 2},		/* add r3, pc, r2 */
	    {0xe08f3003, 4, 0, 3, false, 0x1234, 3},		/* add r3, pc, r3 */
	    {0xe0833 << 12 | 0x00f, 4, 0, 3, false, 0x1234, 3}, /* add r3, r3, pc */
	    {0xe79f3002, 4, 0, 3, true, 0x1234, 2},		/* ldr r3, [pc, r2] */
	    {0xe79f3003, 4, 0, 3, true, 0x1234, 3},		/* ldr r3, [pc, r3] */
	    {0xe1a0300f, 4, 0, 3, false, 0, 0},			/* mov r3, pc */
	};

	(void)state;
	for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
		for (uint32_t odd = 0; odd <= 2u * forms[k].thumb; odd += 2) {
			for (int far = 0; far < 2; far++) {
				uint32_t at = AT + odd, pc = at + (forms[k].thumb ? 4 : 8);
				uint32_t slot = far ? FAR : NEAR, want;
				struct machine m = {.reg = {0}};
				struct arch_patch p;

				want = (pc & ~3u) + (uint32_t)forms[k].distance;
				if (forms[k].index) {
					m.reg[forms[k].index] = 0x1234;
					m.known[forms[k].index] = true;
				}
				assert_int_equal(plan_at(&forms[k].bits, forms[k].length,
							 at | forms[k].thumb, slot, &p),
						 ARCH_OK);
				assert_int_equal(p.addr, at);
				assert_in_range(p.length, far ? 8 : 4, far ? 12 : 6);
				run(&m, &p, slot + 48, forms[k].thumb);
				assert_int_equal(m.jumped_to, at + p.length);
				assert_int_equal(m.loaded, forms[k].load);
				assert_int_equal(
				    forms[k].load ? m.loaded_from : m.reg[forms[k].reg], want);
			}
		}
	}
}

/* ldr r3, [pc, #x]; add r3, pc, which position independent Thumb code begins with: the copy must
 * add the old pc. */
static void test_thumb_pair(void **state)
{
	struct machine m = {.reg = {[3] = 0x89abcdef}, .known = {[3] = true}};
	struct arch_patch p;

	(void)state;
	assert_int_equal(plan_at("\x7b\x44\x00\xbf", 4, AT | 1, NEAR, &p),
			 ARCH_OK); /* add r3, pc */
	run(&m, &p, NEAR + 48, true);
	assert_int_equal(m.reg[3], 0x89abcdef + AT + 4);
	assert_int_equal(m.jumped_to, AT + 4);
}

/* Targets of taken branches: in the copy the inverse branch skips a jump to the target. */
static void test_branches(void **state)
{
	struct arch_patch p;
	struct machine m;

	(void)state;
	/* beq.n, cbz, beq.w; A32: beq */
	static const struct {
		uint32_t bits;
		uint8_t length, thumb, over;
		uint32_t target;
	} forms[] = {{0xd020, 2, 1, 2, AT + 0x44},
		     {0xb140, 2, 1, 2, AT + 0x14},
		     {0x8020f000, 4, 1, 2, AT + 0x44},
		     {0x0a00000e, 4, 0, 4, AT + 0x40}};

	for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
		struct arch_patch taken;

		assert_int_equal(
		    plan_at(&forms[k].bits, forms[k].length, AT | forms[k].thumb, NEAR, &p),
		    ARCH_OK);
		taken = p;
		memmove(taken.relocated, taken.relocated + forms[k].over,
			sizeof(taken.relocated) - forms[k].over);
		m = (struct machine){.jumped = false};
		run(&m, &taken, NEAR + 48 + forms[k].over, forms[k].thumb);
		assert_int_equal(m.jumped_to, forms[k].target);
	}
}

static void test_it_blocks(void **state)
{
	struct arch_patch p;

	(void)state;
	/* cmp r0, #0; ite ne; movne r1, r0; moveq r1, #1: in the copy each has its own IT block */
	assert_int_equal(plan_at("\x00\x28\x14\xbf\x01\x46\x01\x21", 8, AT | 1, NEAR, &p), ARCH_OK);
	assert_int_equal(p.length, 8);
	assert_int_equal(p.insns, 3); /* cmp, the block, the jump back */
	assert_memory_equal(p.old_off, "\0\2\x8", 3);
	assert_memory_equal(p.relocated, "\x00\x28\x18\xbf\x01\x46\x08\xbf\x01\x21", 10);
	assert_int_equal(p.new_off[2], 10);
}

static void test_refusals(void **state)
{
	struct arch_patch p;

	(void)state;
	assert_int_equal(plan_at("\x00\xf0\x10\xf8", 4, AT | 1, NEAR, &p), ARCH_REFUSE_CALL);
	assert_int_equal(plan_at("\x00\xf0\x10\xe8", 4, AT | 1, NEAR, &p), ARCH_REFUSE_CALL);
	assert_int_equal(plan_at("\x00\xdf\x00\xbf", 4, AT | 1, NEAR, &p), ARCH_REFUSE_INSN);
	assert_int_equal(plan_at("\x00\xbe\x00\xbf", 4, AT | 1, NEAR, &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(plan_at("\x01\xde\x00\xbf", 4, AT | 1, NEAR, &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(plan_at("\xdf\xf8\x00\xf0\1\2\3\4", 8, AT | 1, NEAR, &p),
			 ARCH_REFUSE_FOREIGN);
	assert_int_equal(plan_at("\x70\x47\x00\xbf", 4, AT | 1, NEAR, &p), ARCH_REFUSE_SHORT);
	assert_int_equal(plan_at("\x04\xf0\x1f\xe5\1\2\3\4", 8, AT, NEAR, &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(plan_at("\xfe\xff\xff\xeb", 4, AT, NEAR, &p), ARCH_REFUSE_CALL);
	assert_int_equal(plan_at("\0\0\0\xef", 4, AT, NEAR, &p), ARCH_REFUSE_INSN);
	assert_int_equal(plan_at("\xf0\x01\xf0\xe7", 4, AT, NEAR, &p), ARCH_REFUSE_FOREIGN);
	/* A branch to the second instruction of the window: b.n AT + 2 from AT + 8 */
	assert_int_equal(plan_at("\x00\xbf\x00\xbf\x00\xbf\x00\xbf\xfb\xe7", 10, AT | 1, NEAR, &p),
			 ARCH_REFUSE_BRANCH_INTO);
}

/* The slot loads ip (descriptor) and pc (the agent's address) from words after its code. */
static void test_slot(void **state)
{
	uint8_t out[48];

	(void)state;
	assert_int_equal(arch_arm.patch.encode_slot(out, NEAR, 0x11223344, 0x55667788), 16);
	assert_memory_equal(out, "\x00\xc0\x9f\xe5\x00\xf0\x9f\xe5\x44\x33\x22\x11\x88\x77\x66\x55",
			    16);
	assert_int_equal(arch_arm.patch.encode_slot(out, NEAR | 1, 0x11223344, 0x55667788), 16);
	assert_memory_equal(out, "\xdf\xf8\x04\xc0\xdf\xf8\x04\xf0\x44\x33\x22\x11\x88\x77\x66\x55",
			    16);
}

static void test_random_bytes(void **state)
{
	struct arch_patch p;
	int planned = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 100000; round++) {
		size_t size = (size_t)(rand() % 40);
		uint8_t *code = malloc(size + 1);

		for (size_t i = 0; i < size; i++)
			code[i] = (uint8_t)rand();
		if (arch_arm.patch.plan(code, size, AT | (round & 1), round & 2 ? NEAR : FAR, NEAR,
					&p) == ARCH_OK) {
			planned++;
			assert_in_range(p.length, 4, sizeof(p.new_bytes));
			assert_true(p.addr + p.length <= AT + size);
			assert_in_range(p.insns, 2, sizeof(p.old_off));
			assert_in_range(p.relocated_length, 4, sizeof(p.relocated));
		}
		free(code);
	}
	assert_in_range(planned, 1000, 99000);
}

static int plan_symbol(const uint8_t *file, size_t length, Elf *elf, const GElf_Sym *sym)
{
	uint64_t value = sym->st_value & ~1ull;
	struct arch_patch p;
	size_t n;

	assert_int_equal(elf_getphdrnum(elf, &n), 0);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || value < ph.p_vaddr ||
		    value + sym->st_size > ph.p_vaddr + ph.p_filesz)
			continue;
		assert_true(ph.p_offset + value - ph.p_vaddr + sym->st_size <= length);
		return arch_arm.patch.plan(file + ph.p_offset + (value - ph.p_vaddr), sym->st_size,
					   0x40000000 + sym->st_value, 0x40500000, 0x40500100, &p);
	}
	return -1;
}

static int plan_library(const char *path)
{
	static const char *const names[] = {
	    "malloc",	     "calloc", "realloc", "free",   "memalign", "posix_memalign",
	    "aligned_alloc", "mmap",   "munmap",  "mremap", "mmap64",	"mallopt",
	    "reallocarray",  "shmat",  "shmdt",	  "valloc", "pvalloc",	"prctl"};
	int planned = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *scn = NULL;
	size_t length;
	uint8_t *file;
	Elf *elf;

	if (fd < 0)
		return 0;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	file = (uint8_t *)elf_rawfile(elf, &length);
	assert_non_null(file);
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);

			for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
				if (strcmp(name, names[k]) != 0 || !sym.st_value)
					continue;
				if (plan_symbol(file, length, elf, &sym) != ARCH_OK)
					fail_msg("%s of %s", name, path);
				planned++;
			}
		}
	}
	elf_end(elf);
	close(fd);
	return planned;
}

static void test_debians_allocators(void **state)
{
	static const char *const libraries[] = {
	    "lib/arm-linux-gnueabihf/libc.so.6",
	    "usr/lib/arm-linux-gnueabihf/libjemalloc.so.2",
	    "usr/lib/arm-linux-gnueabihf/libtcmalloc_minimal.so.4",
	    "lib/ld-musl-armhf.so.1",
	};
	const char *sysroot = getenv("SYSROOT") ? getenv("SYSROOT") : "build/sysroot";
	int planned = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/arm/%s", sysroot, libraries[i]);
		planned += plan_library(path);
	}
	if (!planned) {
		print_message("skipped: no sysroot of arm in %s (scripts/sysroot)\n", sysroot);
		skip();
	}
	print_message("%d entries planned\n", planned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forms),	 cmocka_unit_test(test_thumb_pair),
	    cmocka_unit_test(test_branches),	 cmocka_unit_test(test_it_blocks),
	    cmocka_unit_test(test_refusals),	 cmocka_unit_test(test_slot),
	    cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_debians_allocators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
