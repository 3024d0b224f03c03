/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compares functions, inlined calls and lines of C++ and Rust programs with those of addr2line.
 *
 * addr2line of binutils 2.40 is right for DWARF 4 only: with DWARF 5 it prints the wrong file for
 * some lines, or does not find the inlined calls of clang, and it finds none with -gsplit-dwarf.
 * The format of debug information does not change the code, so the results for other formats are
 * compared with those for DWARF 4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/session.h"
#include "unwind/section.h"
#include "unwind/symbols/symbols.h"

#define CXX_SOURCES "inlined.cc inlined_other.cc"
#define MAX_FRAMES  64

static char directory[] = "/tmp/memprof-unit-XXXXXX";

struct chain {
	uint32_t n;
	struct {
		char function[1024], file[128];
		unsigned int line;
	} frame[MAX_FRAMES];
};

static void run(const char *command)
{
	if (system(command)) {
		print_error("failed: %s\n", command);
		fail();
	}
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Stores the demangled name without suffix: constructors and destructors of a class can have
 * several symbols for one address, and parts of a function have symbols with a suffix. */
static void set_name(char *to, size_t size, const char *raw)
{
	char *nice = symbol_demangle(raw), *clone;

	snprintf(to, size, "%s", nice ? nice : raw);
	free(nice);
	clone = strstr(to, " [clone");
	if (!clone)
		clone = strstr(to, ".cold");
	if (clone)
		*clone = 0;
}

static void find(struct symbols *s, uint64_t addr, struct chain *c)
{
	struct mp_symbol out[MAX_FRAMES];

	c->n = symbols_find(s, addr | SS_PC_EXACT, out, MAX_FRAMES);
	for (uint32_t i = 0; i < c->n; i++) {
		set_name(c->frame[i].function, sizeof(c->frame[i].function),
			 out[i].raw_function ? out[i].raw_function : "??");
		snprintf(c->frame[i].file, sizeof(c->frame[i].file), "%s",
			 base(out[i].source ? out[i].source : "??"));
		c->frame[i].line = out[i].line;
		assert_int_equal(out[i].is_inline, i + 1 < c->n);
	}
}

static struct symbols *open_program(const char *path)
{
	struct mp_module m = {.end = 1ull << 40, .path = path};
	struct symbols *s = symbols_new(NULL);

	assert_non_null(s);
	assert_int_equal(symbols_add_module(s, &m, NULL), 0);
	return s;
}

/* @sources: names of files in the folder of this one. */
static void build(char *path, size_t size, const char *name, const char *command,
		  const char *sources)
{
	char *here = getcwd(NULL, 0), line[4096];

	assert_non_null(here);
	snprintf(path, size, "%s/%s", directory, name);
	/* clang writes .dwo files to the current folder. */
	snprintf(line, sizeof(line), "cp %s/tests/unit/unwind/inlined* %s && cd %s && %s %s -o %s",
		 here, directory, directory, command, sources, path);
	free(here);
	run(line);
}

struct text {
	uint64_t start, end;
	uint8_t *covered; /* for each byte: whether it is part of a function */
};

static void cover(struct text *t, Elf_Scn *symbols, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(symbols, NULL);
	GElf_Sym sym;

	for (size_t i = 0; i < header->sh_size / sizeof(Elf64_Sym); i++) {
		assert_non_null(gelf_getsym(data, (int)i, &sym));
		for (uint64_t k = 0; GELF_ST_TYPE(sym.st_info) == STT_FUNC && k < sym.st_size;
		     k++) {
			if (sym.st_value + k >= t->start && sym.st_value + k < t->end)
				t->covered[sym.st_value + k - t->start] = 1;
		}
	}
}

static void find_text(const char *path, struct text *t)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Shdr text, symbols_header;
	Elf_Scn *symbols;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	symbols = elf_section(elf, ".symtab", &symbols_header);
	assert_true(symbols && elf_section(elf, ".text", &text));
	*t = (struct text){.start = text.sh_addr, .end = text.sh_addr + text.sh_size};
	assert_true(t->end > t->start);
	t->covered = calloc(t->end - t->start + 1, 1);
	assert_non_null(t->covered);
	cover(t, symbols, &symbols_header);
	elf_end(elf);
	close(fd);
}

static bool next_line(FILE *f, char *line, int size)
{
	if (!fgets(line, size, f))
		return false;
	line[strcspn(line, "\n")] = 0;
	return true;
}

/* Reads addr2line -afi's lines for one address.  @line: its first line; gets that of the next. */
static bool read_chain(FILE *f, char *line, int size, uint64_t *addr, struct chain *c)
{
	char *colon;

	c->n = 0;
	if (strncmp(line, "0x", 2))
		return false;
	*addr = strtoull(line, NULL, 16);
	while (next_line(f, line, size) && strncmp(line, "0x", 2)) {
		assert_true(c->n < MAX_FRAMES);
		set_name(c->frame[c->n].function, sizeof(c->frame[c->n].function), line);
		assert_true(next_line(f, line, size));
		colon = strrchr(line, ':');
		assert_non_null(colon);
		*colon = 0;
		snprintf(c->frame[c->n].file, sizeof(c->frame[c->n].file), "%.127s", base(line));
		c->frame[c->n++].line = (unsigned int)strtoul(colon + 1, NULL, 10);
	}
	return true;
}

static bool same(const struct chain *a, const struct chain *b, bool first_name)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		bool name = i || first_name || a->n == 1;

		if ((name && strcmp(a->frame[i].function, b->frame[i].function)) ||
		    a->frame[i].line != b->frame[i].line ||
		    (a->frame[i].line && strcmp(a->frame[i].file, b->frame[i].file)))
			return false;
	}
	return true;
}

static void show(const char *who, const struct chain *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		print_error("  %s: %s %s:%u\n", who, c->frame[i].function, c->frame[i].file,
			    c->frame[i].line);
}

/* addr2line uses the name of the ELF symbol for the innermost call if it has a suffix or is local.
 * For padding between functions it prints the function before. */
static void against_addr2line(const char *path, unsigned int step)
{
	struct symbols *s = open_program(path);
	uint32_t compared = 0, inlined = 0;
	char command[512], line[4096];
	struct chain ours, theirs;
	struct text t;
	uint64_t addr;
	FILE *f;

	find_text(path, &t);
	snprintf(command, sizeof(command),
		 "awk 'BEGIN { for (a = %llu; a < %llu; a += %u) printf \"0x%%x\\n\", a }' | "
		 "addr2line -afi -e %s",
		 (unsigned long long)t.start, (unsigned long long)t.end, step, path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_true(next_line(f, line, sizeof(line)));
	while (read_chain(f, line, sizeof(line), &addr, &theirs)) {
		find(s, addr, &ours);
		if (!ours.n && !t.covered[addr - t.start])
			continue;
		compared++;
		inlined += ours.n > 1;
		if (same(&ours, &theirs, false))
			continue;
		print_error("%s, 0x%llx:\n", path, (unsigned long long)addr);
		show("memprof", &ours);
		show("addr2line", &theirs);
		fail();
	}
	assert_int_equal(pclose(f), 0);
	symbols_free(s);
	free(t.covered);
	print_message("%s: %u addresses, %u with inlined calls\n", base(path), compared, inlined);
	assert_true(compared > (t.end - t.start) / step / 10 * 9);
}

static void against_each_other(const char *path, const char *other)
{
	struct symbols *a = open_program(path), *b = open_program(other);
	struct text t, u;
	struct chain x, y;

	find_text(path, &t);
	find_text(other, &u);
	assert_int_equal(t.end - t.start, u.end - u.start);
	for (uint64_t i = 0; i < t.end - t.start; i++) {
		find(a, t.start + i, &x);
		find(b, u.start + i, &y);
		if (same(&x, &y, true))
			continue;
		print_error("%s, 0x%" PRIx64 ":\n", path, t.start + i);
		show(base(path), &x);
		show(base(other), &y);
		fail();
	}
	free(t.covered);
	free(u.covered);
	symbols_free(a);
	symbols_free(b);
}

/* Compares DWARF 4 with addr2line, and DWARF 5 with DWARF 4. */
static void both_versions(const char *name, const char *compiler)
{
	char four[256], five[256], file[64], command[128];

	snprintf(file, sizeof(file), "%s-4", name);
	snprintf(command, sizeof(command), "%s -gdwarf-4", compiler);
	build(four, sizeof(four), file, command, CXX_SOURCES);
	against_addr2line(four, 1);
	snprintf(file, sizeof(file), "%s-5", name);
	snprintf(command, sizeof(command), "%s -gdwarf-5", compiler);
	build(five, sizeof(five), file, command, CXX_SOURCES);
	against_each_other(five, four);
}

static void split_too(const char *name, const char *compiler)
{
	char whole[256], split[256], file[64], command[128];

	snprintf(file, sizeof(file), "%s-whole", name);
	snprintf(command, sizeof(command), "%s -g", compiler);
	build(whole, sizeof(whole), file, command, CXX_SOURCES);
	snprintf(file, sizeof(file), "%s-split", name);
	snprintf(command, sizeof(command), "%s -g -gsplit-dwarf", compiler);
	build(split, sizeof(split), file, command, CXX_SOURCES);
	against_each_other(split, whole);
}

static void test_gcc(void **state)
{
	(void)state;
	both_versions("gcc", "g++ -O2");
	split_too("gcc", "g++ -O2");
}

static void test_lto(void **state)
{
	(void)state;
	both_versions("lto", "g++ -O2 -flto");
}

static void test_unoptimized(void **state)
{
	(void)state;
	both_versions("plain", "g++ -O0");
}

static void test_clang(void **state)
{
	(void)state;
	both_versions("clang", "clang++ -O2");
	split_too("clang", "clang++ -O2");
}

static void test_rust(void **state)
{
	char path[256];

	(void)state;
	build(path, sizeof(path), "rust", "rustc -O -g", "inlined.rs");
	against_addr2line(path, 7);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gcc),		cmocka_unit_test(test_lto),
	    cmocka_unit_test(test_unoptimized), cmocka_unit_test(test_clang),
	    cmocka_unit_test(test_rust),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
