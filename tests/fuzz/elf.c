/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads unwind tables, build-id and symbols from a malicious ELF file. */
#include <gelf.h>
#include "formats/file.h"
#include "fuzz.h"
#include "unwind/symbols/symbols.h"
#include "unwind/table.h"
#include "unwind/rule_set.h"
#include "unwind/build.h"
#include "unwind/build_id.h"

/* elfutils 0.188 leaks in dwarf_getscopes() when the DWARF is broken. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so\n";
}

static void tables(const uint8_t *data, size_t size)
{
	char *image = input_text(data, size);
	struct rule_set *set = rule_set_new();
	Elf *elf = elf_memory(image, size);
	struct unwind_table table;
	uint8_t id[32];

	if (elf && set && !unwind_table_build(elf, NULL, set, &table)) {
		for (uint32_t i = 1; i < table.n; i++) {
			if (table.pc[i] <= table.pc[i - 1])
				abort();
		}
		for (uint32_t i = 0; i < table.n; i++) {
			if (unwind_table_find(&table, table.pc[i]) != table.rule[i] ||
			    table.rule[i] >= rule_set_count(set))
				abort();
		}
		unwind_table_free(&table);
	}
	if (elf)
		elf_build_id(elf, id);
	elf_end(elf);
	rule_set_free(set);
	free(image);
}

static void symbols(const uint8_t *data, size_t size)
{
	static const char *const no_dirs[] = {NULL};
	struct mp_module m = {.start = 0x400000, .end = 0x500000, .path = "/fuzz"};
	struct symbols *s = symbols_new(no_dirs);
	struct mp_symbol out[16];
	char path[64];
	int fd = input_file(data, size, path);

	if (s && !symbols_add_module(s, &m, path)) {
		for (uint64_t pc = 0; pc < 64; pc++)
			symbols_find(s, pc * 64 + 1, out, 16);
		for (uint64_t pc = 0x401000; pc < 0x401400; pc += 16)
			symbols_find(s, pc, out, 16);
	}
	symbols_free(s);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	elf_version(EV_CURRENT);
	tables(data, size);
	symbols(data, size);
	return 0;
}
