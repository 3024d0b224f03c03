/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instructions of which tests build MIPS64 functions. */
#ifndef TESTS_MIPS64_WORDS_H
#define TESTS_MIPS64_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"

#define NOP	    0u
#define RETURN	    0x03e00008u /* jr $ra */
#define ENTER	    0x67bdffc0u /* daddiu $sp, $sp, -64 */
#define SAVE_GP	    0xffbc0030u /* sd $gp, 48($sp) */
#define GP_HIGH	    0x3c1c0014u /* lui $gp, 0x14 */
#define GP_ADD	    0x0399e02du /* daddu $gp, $gp, $t9 */
#define BEQZ_A0(n)  (0x10800000u | (uint16_t)(n))
#define BEQZL_A0(n) (0x50800000u | (uint16_t)(n))

static inline void put(const struct arch *arch, uint8_t *out, uint32_t w)
{
	for (int i = 0; i < 4; i++)
		out[arch->elf_data == 2 ? 3 - i : i] = (uint8_t)(w >> 8 * i);
}

/* Writes a function of @words words: the @n given ones, then nops and a return. */
static inline void put_function(const struct arch *arch, uint8_t *code, size_t words,
				const uint32_t *head, size_t n)
{
	for (size_t i = 0; i < words; i++)
		put(arch, code + 4 * i, i < n ? head[i] : i == words - 2 ? RETURN : NOP);
}

#endif
