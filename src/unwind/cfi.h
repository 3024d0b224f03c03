/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Call frame information of any architecture, byte order and word size: .eh_frame (LSB 5.0, 10.6)
 * and .debug_frame (DWARF 5, 6.4).  Pure functions over an ELF image, used by table.c only.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "lib/vec.h"
#include "unwind/bytes.h"
#include "unwind/rule.h"

/* A section with call frame information.  The bytes belong to the Elf. */
struct cfi {
	const uint8_t *data;
	size_t size;
	uint64_t addr; /* ELF address of the first byte */
	const struct arch *arch;
	bool debug; /* .debug_frame */
};

/* One function or part of one. */
struct cfi_fde {
	uint64_t start, end;	      /* ELF addresses */
	size_t cie, insns, insns_end; /* offsets in the section */
};
struct cfi_fdes {
	VEC(struct cfi_fde) list;
};

struct cfi_cie {
	uint64_t code_factor;
	int64_t data_factor;
	uint32_t ra_register; /* DWARF register number */
	uint8_t encoding;     /* encoding of addresses, DW_EH_PE_* */
	bool sized;	      /* augmentation 'z' */
	bool signal;	      /* augmentation 'S' */
	struct bytes insns;
};

/**
 * cfi_open() - find the call frame information of @elf
 * @debug: .debug_frame (decompressed if necessary) instead of .eh_frame
 * Return: false if there is none.
 */
bool cfi_open(Elf *elf, const struct arch *arch, bool debug, struct cfi *cfi);
/* Fills @fdes with all functions, sorted by address, each start once.  The caller frees it by
 * vec_free(&fdes->list).  Return: 0 or -ENOMEM. */
int cfi_fdes(const struct cfi *cfi, struct cfi_fdes *fdes);
/* Return: false if the entry at @offset is not a CIE or is not supported. */
bool cfi_read_cie(const struct cfi *cfi, size_t offset, struct cfi_cie *cie);

/* Return: the column of DWARF register @reg, -1 if it is not tracked. */
int cfi_column(const struct arch *arch, uint64_t reg);

/* Receives a row: @rule is valid from @pc on; NULL: no rule. */
typedef int cfi_row_fn(void *ctx, uint64_t pc, const struct uw_full *rule);
/* Calls @row for each row of @fde in order of addresses.  Return: 0, or the first value other than
 * 0 that @row returned, which ends the calls. */
int cfi_rows(const struct cfi *cfi, const struct cfi_fde *fde, cfi_row_fn *row, void *ctx);

#endif
