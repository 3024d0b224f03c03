/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds where functions begin and set up a frame pointer by their bytes, because decoding all of a
 * program of hundreds of megabytes would take a minute. */
#include <string.h>
#include "arch/x86_64/x86_64.h"

#define ALIGNMENT   16u /* of functions, by all compilers except for small code */
#define INT3	    0xcc
#define RET	    0xc3
#define CALL	    0xe8
#define JMP	    0xe9
#define JMP_SHORT   0xeb
#define LONGEST_NOP 11u
#define PUSH_RBP    0x55

struct text {
	const uint8_t *at;
	size_t size;
	uint64_t addr;
};

static bool begins(const struct text *t, size_t i, const void *bytes, size_t n)
{
	return i <= t->size && t->size - i >= n && !memcmp(t->at + i, bytes, n);
}

/* Length of push %rbp; mov %rsp,%rbp at @i, or 0. */
static size_t setup_length(const struct text *t, size_t i)
{
	return begins(t, i, "\x55\x48\x89\xe5", 4) || begins(t, i, "\x55\x48\x8b\xec", 4) ? 4 : 0;
}

static bool is_aligned(const struct text *t, size_t i)
{
	return (t->addr + i) % ALIGNMENT == 0;
}

/* Length of a no-operation that compilers use as padding (the processor manuals' list), or 0. */
static size_t nop_length(const struct text *t, size_t i)
{
	static const struct {
		uint8_t modrm, length;
	} nop[] = {{0x00, 3}, {0x40, 4}, {0x44, 5}, {0x80, 7}, {0x84, 8}};
	size_t prefixes = 0;

	while (i + prefixes < t->size &&
	       (t->at[i + prefixes] == 0x66 || t->at[i + prefixes] == 0x2e))
		prefixes++;
	if (begins(t, i + prefixes, "\x90", 1))
		return prefixes + 1;
	for (size_t k = 0; k < sizeof(nop) / sizeof(nop[0]); k++) {
		const uint8_t bytes[] = {0x0f, 0x1f, nop[k].modrm};

		if (begins(t, i + prefixes, bytes, sizeof(bytes)))
			return prefixes + nop[k].length;
	}
	return 0;
}

/* The end of the padding at @i if a function can begin there, else 0. */
static size_t padding_end(const struct text *t, size_t i)
{
	size_t length;

	while ((length = nop_length(t, i))) {
		i += length;
		if (i < t->size && is_aligned(t, i))
			return i;
	}
	return 0;
}

/* Is the byte at @i, which looks like a return, an operand of the instruction before? */
static bool is_operand(const struct text *t, size_t i)
{
	static const uint8_t two_operands[] = "\x63\x84\x85\x87\x88\x89\x8a\x8b\xaf\xb6\xb7\xbe"
					      "\xbf\xc1\xd1\xd3\xf7\xff\x81\x83";

	if (!i)
		return false;
	/* Arithmetic: 01, 03, 09, 0b ... 39, 3b. */
	return (t->at[i - 1] < 0x40 && (t->at[i - 1] & 5) == 1) ||
	       memchr(two_operands, t->at[i - 1], sizeof(two_operands) - 1);
}

/* Target of the call or jump at @i, as an index; SIZE_MAX: outside the text. */
static size_t target_of(const struct text *t, size_t i)
{
	int32_t distance;
	uint64_t to;

	if (t->size - i < 5)
		return SIZE_MAX;
	memcpy(&distance, t->at + i + 1, sizeof(distance));
	to = i + 5 + (uint64_t)(int64_t)distance;
	return to < t->size ? to : SIZE_MAX;
}

static bool follows_return(const struct text *t, size_t i)
{
	return i && (t->at[i - 1] == INT3 || (t->at[i - 1] == RET && !is_operand(t, i - 1)));
}

/* Does an instruction that does not return end at @i? */
static bool ends_at(const struct text *t, size_t i)
{
	return follows_return(t, i) ||
	       (i >= 5 && t->at[i - 5] == JMP && target_of(t, i - 5) != SIZE_MAX) ||
	       (i >= 2 && begins(t, i - 2, "\x0f\x0b", 2));
}

/* The same, or a call that does not return; used if an int3 follows. */
static bool ends_before_int3(const struct text *t, size_t i)
{
	return ends_at(t, i) || (i >= 2 && t->at[i - 2] == JMP_SHORT) ||
	       (i >= 5 && t->at[i - 5] == CALL && target_of(t, i - 5) != SIZE_MAX);
}

static bool padded_to(const struct text *t, size_t i)
{
	for (size_t n = 1; n <= LONGEST_NOP && n <= i; n++) {
		if (nop_length(t, i - n) == n)
			return true;
	}
	return false;
}

/* The function that the bytes at @i call; SIZE_MAX: they are not a call.  Most such bytes are part
 * of other instructions. */
static size_t callee(const struct text *t, size_t i)
{
	size_t to = target_of(t, i);

	if (to == SIZE_MAX || to == i + 5)
		return SIZE_MAX;
	if (setup_length(t, to) || follows_return(t, to))
		return to;
	return is_aligned(t, to) && (ends_at(t, to) || padded_to(t, to)) ? to : SIZE_MAX;
}

/* What is marked because of the byte at @i: a start, and the jump that is its condition. */
struct found {
	size_t start, jump; /* indices; SIZE_MAX: none */
};

static struct found look_at(const struct text *t, size_t i)
{
	struct found f = {SIZE_MAX, SIZE_MAX};
	size_t end;

	switch (t->at[i]) {
	case INT3:
		/* Constants can have runs of such bytes, too. */
		if (is_aligned(t, i + 1) && !begins(t, i + 1, "\xcc", 1) && ends_before_int3(t, i))
			f.start = i + 1;
		break;
	case CALL:
		f.start = callee(t, i);
		break;
	case RET:
		end = is_operand(t, i) ? 0 : padding_end(t, i + 1);
		f.start = end ? end : SIZE_MAX;
		break;
	case JMP:
		end = padding_end(t, i + 5);
		f.jump = end ? target_of(t, i) : SIZE_MAX;
		f.start = f.jump == SIZE_MAX ? SIZE_MAX : end;
		break;
	}
	return f;
}

void x86_find_frames(const uint8_t *code, size_t size, uint64_t addr, arch_mark_fn *mark, void *ctx)
{
	const struct text t = {code, size, addr};

	for (size_t i = 0; i < size; i++) {
		size_t length = code[i] == PUSH_RBP ? setup_length(&t, i) : 0;
		struct found f;

		if (length) {
			mark(ctx, ARCH_MARK_FRAME, addr + i + length, 0);
			if (is_aligned(&t, i))
				mark(ctx, ARCH_MARK_START, addr + i, 0);
			continue;
		}
		f = look_at(&t, i);
		if (f.start < size)
			mark(ctx, f.jump == SIZE_MAX ? ARCH_MARK_START : ARCH_MARK_BEHIND_JUMP,
			     addr + f.start, addr + f.jump);
	}
}

/* Bytes of an instruction with a one-byte opcode that is followed by @modrm and @sib (Intel SDM,
 * 2.1). */
static size_t length_by_modrm(uint8_t modrm, uint8_t sib)
{
	static const uint8_t displacement[] = {0, 1, 4, 0};
	uint8_t mod = modrm >> 6, rm = modrm & 7;
	bool has_sib = mod < 3 && rm == 4;
	bool absolute = mod == 0 && (rm == 5 || (has_sib && (sib & 7) == 5));

	return 2u + has_sib + (absolute ? 4u : displacement[mod]);
}

bool x86_ends_in_call(const uint8_t *code, size_t size)
{
	if (size >= 5 && code[size - 5] == CALL)
		return true;
	for (size_t n = 2; n <= 7 && n <= size; n++) {
		const uint8_t *p = code + size - n;

		if (p[0] == 0xff && (p[1] >> 3 & 7) == 2 &&
		    length_by_modrm(p[1], n > 2 ? p[2] : 0) == n)
			return true;
	}
	return false;
}
