/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What an ELF file has for symbols and unwinding. */
#ifndef UNWIND_ELF_FACTS_H
#define UNWIND_ELF_FACTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_facts {
	bool symtab;	  /* .symtab: all functions */
	bool dynsym;	  /* .dynsym: exported functions */
	bool minidebug;	  /* .gnu_debugdata: a compressed .symtab */
	bool lines;	  /* .debug_info: files, lines, inlined calls */
	bool unwind;	  /* .eh_frame, .debug_frame or .ARM.exidx */
	int build_id_len; /* 0: none */
	uint8_t build_id[32];
};

struct elf_facts elf_facts(Elf *elf);

#endif
