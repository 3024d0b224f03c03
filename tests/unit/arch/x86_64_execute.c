/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs relocated code: of real functions, and of this program's malloc while it is patched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if defined(__x86_64__)
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
#include "arch/arch.h"

#define PAGE 4096ull

/* Return: a writable and executable page within reach of @near. */
static uint8_t *page_near(uint64_t near)
{
	for (uint64_t away = 1ull << 20; away < 1ull << 30; away += 1ull << 20) {
		uint64_t at[2] = {(near & ~(PAGE - 1)) - away, (near & ~(PAGE - 1)) + away};

		for (int i = 0; i < 2; i++) {
			void *p = mmap((void *)at[i], PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

			if (p == (void *)at[i])
				return p;
			if (p != MAP_FAILED)
				munmap(p, PAGE);
		}
	}
	return NULL;
}

static size_t function_size(void *function)
{
	const Elf64_Sym *sym = NULL;
	Dl_info info;

	if (!dladdr1(function, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym)
		return 0;
	return sym->st_size;
}

/* Return: a relocated copy of @function's window, which continues in @function; NULL: refused. */
static void *relocated(void *function, uint8_t *page, struct arch_patch *p)
{
	if (arch_x86_64.patch.plan(function, function_size(function), (uint64_t)function,
				   (uint64_t)page, (uint64_t)page + 64, p) != ARCH_OK)
		return NULL;
	memcpy(page + 64, p->relocated, p->relocated_length);
	return page + 64;
}

static int by_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void test_real_functions(void **state)
{
	uint8_t *page = page_near((uint64_t)dlsym(RTLD_DEFAULT, "qsort"));
	int numbers[] = {5, 3, 9, 1, 7}, sorted[] = {1, 3, 5, 7, 9};
	struct arch_patch p;
	char text[40] = "";
	void *f;

	(void)state;
	assert_non_null(page);
	f = relocated(dlsym(RTLD_DEFAULT, "qsort"), page, &p);
	assert_non_null(f);
	((void (*)(void *, size_t, size_t, int (*)(const void *, const void *)))f)(numbers, 5, 4,
										   by_int);
	assert_memory_equal(numbers, sorted, sizeof(sorted));
	f = relocated(dlsym(RTLD_DEFAULT, "strtol"), page, &p);
	assert_non_null(f);
	assert_int_equal(((long (*)(const char *, char **, int))f)("-1234x", NULL, 10), -1234);
	f = relocated(dlsym(RTLD_DEFAULT, "snprintf"), page, &p);
	assert_non_null(f);
	((int (*)(char *, size_t, const char *, ...))f)(text, sizeof(text), "%d %s %.2f", 42, "x",
							1.5);
	assert_string_equal(text, "42 x 1.50");
	f = relocated(dlsym(RTLD_DEFAULT, "setenv"), page, &p);
	assert_non_null(f);
	assert_int_equal(((int (*)(const char *, const char *, int))f)("memprof_test", "on", 1), 0);
	assert_string_equal(getenv("memprof_test"), "on");
	munmap(page, PAGE);
}

/* Functions that begin with one pc-relative instruction.  A wrong displacement in the copy would
 * read another value. */
static void test_pc_relative_forms(void **state)
{
	static const struct {
		const char *code;
		uint8_t length, disp_at;
		uint64_t want;
	} forms[] = {
	    {"\x48\x8b\x05\0\0\0\0\xc3", 8, 3, 0x1122334455667788}, /* mov rax, [] */
	    {"\x8b\x05\0\0\0\0\xc3", 7, 2, 0x55667788},		    /* mov eax, [] */
	    {"\x0f\xb6\x05\0\0\0\0\xc3", 8, 3, 0x88},		    /* movzx eax, byte [] */
	    {"\x4c\x8b\x1d\0\0\0\0\x4c\x89\xd8\xc3", 11, 3, 0x1122334455667788}, /* mov r11 */
	    {"\x48\x63\x05\0\0\0\0\xc3", 8, 3, 0x55667788},			 /* movsxd */
	    {"\xf3\x0f\x7e\x05\0\0\0\0\x66\x48\x0f\x7e\xc0\xc3", 14, 4,
	     0x1122334455667788}, /* movq xmm0, []; movq rax, xmm0 */
	    {"\xc5\xfa\x7e\x05\0\0\0\0\x66\x48\x0f\x7e\xc0\xc3", 14, 4,
	     0x1122334455667788}, /* vmovq xmm0, [] */
	};
	uint8_t *page = page_near((uint64_t)test_pc_relative_forms);
	uint8_t *island = page_near((uint64_t)page + (256 << 20));
	uint64_t value = 0x1122334455667788;

	(void)state;
	assert_non_null(page);
	assert_non_null(island);
	memcpy(page + 2048, &value, sizeof(value));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		int32_t disp = 2048 - forms[i].disp_at - 4;
		struct arch_patch p;

		if (forms[i].code[0] == '\xc5' && !__builtin_cpu_supports("avx"))
			continue;
		memcpy(page, forms[i].code, forms[i].length);
		memcpy(page + forms[i].disp_at, &disp, sizeof(disp));
		assert_int_equal(arch_x86_64.patch.plan(page, forms[i].length, (uint64_t)page,
							(uint64_t)island, (uint64_t)island + 64,
							&p),
				 ARCH_OK);
		memcpy(island + 64, p.relocated, p.relocated_length);
		assert_int_equal(((uint64_t(*)(void))(island + 64))(), forms[i].want);
		/* Also by calling the patched function. */
		arch_x86_64.patch.encode_slot(island, (uint64_t)island, 0, (uint64_t)island + 64);
		assert_true(p.addr == (uint64_t)page);
		memcpy(page, p.new_bytes, p.length);
		assert_int_equal(((uint64_t(*)(void))page)(), forms[i].want);
	}
	munmap(page, PAGE);
	munmap(island, PAGE);
}

/* Plans all functions of libc without patching them: the copy must decode to the same kinds of
 * instructions with the same targets. */
static void check_equivalent(const uint8_t *code, uint64_t addr, const struct arch_patch *p,
			     uint64_t copy)
{
	size_t skip = p->addr - addr;

	for (int k = 0; k < p->insns; k++) {
		struct arch_insn was, is;

		assert_true(arch_x86_64.patch.decode(code + skip + p->old_off[k], 16,
						     p->addr + p->old_off[k], &was));
		assert_true(arch_x86_64.patch.decode(p->relocated + p->new_off[k], 16,
						     copy + p->new_off[k], &is));
		assert_int_equal(was.kind, is.kind);
		assert_int_equal(was.has_target, is.has_target);
		assert_true(was.target == is.target);
	}
}

static int plan_library(struct dl_phdr_info *info, size_t size, void *counts)
{
	int *planned = counts, *refused = planned + 1;
	const Elf64_Sym *sym = NULL;
	const char *strings = NULL;
	uint32_t n = 0;
	(void)size;

	if (!info->dlpi_name || !strstr(info->dlpi_name, "libc.so.6"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (const Elf64_Dyn *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		     d->d_tag; d++) {
			if (d->d_tag == DT_SYMTAB)
				sym = (void *)d->d_un.d_ptr;
			else if (d->d_tag == DT_STRTAB)
				strings = (void *)d->d_un.d_ptr;
		}
	}
	/* The string table follows the symbols. */
	n = sym && strings ? (uint32_t)(((uintptr_t)strings - (uintptr_t)sym) / sizeof(*sym)) : 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = info->dlpi_addr + sym[i].st_value;
		struct arch_patch p;

		if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || !sym[i].st_shndx ||
		    !sym[i].st_size)
			continue;
		if (arch_x86_64.patch.plan((const uint8_t *)addr, sym[i].st_size, addr,
					   addr - (16 << 20), addr - (16 << 20) + 64,
					   &p) != ARCH_OK) {
			++*refused;
			continue;
		}
		++*planned;
		check_equivalent((const uint8_t *)addr, addr, &p, addr - (16 << 20) + 64);
	}
	return 1;
}

static void test_all_of_libc(void **state)
{
	int counts[2] = {0};

	(void)state;
	dl_iterate_phdr(plan_library, counts);
	print_message("%d functions of libc planned, %d refused\n", counts[0], counts[1]);
	assert_true(counts[0] > 1500);
	assert_true(counts[1] > 10); /* calls at the entry, two-byte thunks */
	assert_true(counts[1] < counts[0] / 2);
}

/* Writes code that counts and continues: lock incq counter(%rip); jmp copy. */
static void put_agent(uint8_t *page, uint64_t *counter, uint64_t copy)
{
	int32_t disp = (int32_t)((uint64_t)counter - ((uint64_t)page + 8));

	memcpy(page, "\xf0\x48\xff\x05", 4);
	memcpy(page + 4, &disp, 4);
	page[8] = 0xe9;
	disp = (int32_t)(copy - ((uint64_t)page + 13));
	memcpy(page + 9, &disp, 4);
}

static int patched_malloc(void)
{
	void *const target = dlsym(RTLD_DEFAULT, "malloc");
	uint8_t *page = page_near((uint64_t)target), before[32], *window;
	uint8_t *text = (uint8_t *)((uint64_t)target & ~(PAGE - 1));
	uint64_t *counter = (uint64_t *)(page + 512), counted;
	struct arch_patch p;
	void *blocks[1000];

	if (!page || !relocated(target, page, &p))
		return 1;
	memcpy(before, target, sizeof(before));
	*counter = 0;
	put_agent(page + 256, counter, (uint64_t)page + 64);
	arch_x86_64.patch.encode_slot(page, (uint64_t)page, (uint64_t)counter,
				      (uint64_t)page + 256);
	if (mprotect(text, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 2;
	window = (uint8_t *)p.addr;
	memcpy(window, p.new_bytes, p.length);
	for (int i = 0; i < 1000; i++) {
		blocks[i] = ((void *(*)(size_t))target)((size_t)i * 40);
		memset(blocks[i], i, (size_t)i * 40);
	}
	memcpy(window, before + (window - (uint8_t *)target), p.length);
	counted = *counter;
	for (int i = 0; i < 1000; i++) {
		if (i && ((uint8_t *)blocks[i])[i * 40 - 1] != (uint8_t)i)
			return 3;
		free(blocks[i]);
	}
	if (memcmp(before, target, sizeof(before)))
		return 4;
	/* Nothing is counted any more. */
	free(((void *(*)(size_t))target)(10));
	return counted == 1000 && *counter == 1000 ? 0 : 5;
}

static void test_patched_malloc(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(patched_malloc());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_real_functions),
	    cmocka_unit_test(test_pc_relative_forms),
	    cmocka_unit_test(test_all_of_libc),
	    cmocka_unit_test(test_patched_malloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	print_message("skipped: this host does not run x86-64 code\n");
	return 77;
}
#endif
