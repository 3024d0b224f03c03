/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entry code of the hooks: a slot loads the address of its struct ss_desc into x17 and jumps here.
 * x16 and x17 are free at a function's entry (AAPCS64 6.1.1); all other registers belong to the
 * caller.
 *
 * Every entry first checks the gate.  If it is zero (off, or a forked child, whose gate page is
 * wiped), the relocated function is entered at once, without a frame of the agent.  In sampling
 * mode only the slow paths check.
 *
 *	call-through (alloc, realloc, maps)	 tail (free): no frame of the agent remains
 *	+112 stack pointer at entry		 +160 stack pointer at entry
 *	+104 x30, the return address		 +152 x30
 *	 +88 x29   +8 ... +80 x19 to x28	 +144 x17 = desc
 *	  +0 x17 = desc				  +0 the caller-saved registers
 *	below the frame: the caller-saved registers
 */
	.section .note.GNU-stack, "", @progbits
	.text

#define FRAME	112
#define CALLERS 144
#define FRAME_RA 104

	.macro gate_or_original
	adrp	x16, ag_gate
	ldr	w16, [x16, :lo12:ag_gate]
	cbz	w16, ag_original
	.endm

	.macro push_frame
	sub	sp, sp, #FRAME
	.cfi_adjust_cfa_offset FRAME
	stp	x17, x19, [sp]
	stp	x20, x21, [sp, #16]
	stp	x22, x23, [sp, #32]
	stp	x24, x25, [sp, #48]
	stp	x26, x27, [sp, #64]
	stp	x28, x29, [sp, #80]
	str	x30, [sp, #FRAME_RA]
	.cfi_offset x30, -8
	.endm

	/* C code has preserved the callee-saved registers. */
	.macro drop_frame
	ldr	x30, [sp, #FRAME_RA]
	.cfi_restore x30
	add	sp, sp, #FRAME
	.cfi_adjust_cfa_offset -FRAME
	.endm

	/*
	 * Caller-saved registers are preserved, too: gcc determines which of them a function of the
	 * same file leaves unchanged, and its callers rely on that (-fipa-ra, part of -O2).  x5,
	 * the sixth argument, is stored directly below the frame, where ag_frame_mmap() reads it.
	 */
	.macro store_callers
	stp	x0, x1, [sp]
	stp	x2, x3, [sp, #16]
	stp	x4, x6, [sp, #32]
	stp	x7, x8, [sp, #48]
	stp	x9, x10, [sp, #64]
	stp	x11, x12, [sp, #80]
	stp	x13, x14, [sp, #96]
	stp	x15, x18, [sp, #112]
	str	x5, [sp, #136]
	.endm

	.macro load_callers_but_x0
	ldr	x1, [sp, #8]
	ldp	x2, x3, [sp, #16]
	ldp	x4, x6, [sp, #32]
	ldp	x7, x8, [sp, #48]
	ldp	x9, x10, [sp, #64]
	ldp	x11, x12, [sp, #80]
	ldp	x13, x14, [sp, #96]
	ldp	x15, x18, [sp, #112]
	ldr	x5, [sp, #136]
	.endm

	.macro push_callers
	sub	sp, sp, #CALLERS
	.cfi_adjust_cfa_offset CALLERS
	store_callers
	.endm

	.macro pop_callers
	ldr	x0, [sp]
	pop_callers_keep_result
	.endm

	/* All except x0, which has the result. */
	.macro pop_callers_keep_result
	load_callers_but_x0
	add	sp, sp, #CALLERS
	.cfi_adjust_cfa_offset -CALLERS
	.endm

	.macro jump_to_original
	ldr	x16, [x17]
	br	x16
	.endm

	.macro function name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	bti	c
	.endm

	.macro end_function name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.globl	ag_original
	.hidden	ag_original
	.type	ag_original, @function
ag_original:
	.cfi_startproc
	jump_to_original
	end_function ag_original

	/* C: uint64_t fn(a0, a1, a2, a3, a4, struct ag_frame *) */
	.macro call_through name, fn, result=1
	function \name
	gate_or_original
	push_frame
	push_callers
	add	x5, sp, #CALLERS
	bl	\fn
	.if \result
	pop_callers_keep_result
	.else
	pop_callers
	.endif
	drop_frame
	ret
	end_function \name
	.endm

	call_through ag_entry_alloc, ag_alloc
	call_through ag_entry_zero_alloc, ag_zero_alloc
	call_through ag_entry_free_traced, ag_free_traced
	call_through ag_entry_posix_memalign, ag_posix_memalign
	call_through ag_entry_realloc, ag_realloc
	call_through ag_entry_xallocx, ag_xallocx
	call_through ag_entry_free_through, ag_free_through, 0
	call_through ag_entry_munmap, ag_munmap
	call_through ag_entry_mremap, ag_mremap
	call_through ag_entry_shmat, ag_shmat
	call_through ag_entry_shmdt, ag_shmdt
	call_through ag_entry_mallopt, ag_mallopt
	call_through ag_entry_prctl, ag_prctl
	call_through ag_entry_sample_alloc, ag_sample_alloc
	call_through ag_entry_sample_posix_memalign, ag_sample_posix_memalign
	call_through ag_entry_sample_realloc, ag_sample_realloc
	call_through ag_entry_sample_xallocx, ag_sample_xallocx

	call_through ag_entry_mmap, ag_mmap

	/*
	 * Throwing operator new: C calls the nothrow sibling.  If that returns 0, the original is
	 * entered without a frame of the agent, so that it can throw.
	 */
	.macro call_through_throw name, fn
	function \name
	gate_or_original
	push_frame
	push_callers
	add	x5, sp, #CALLERS
	bl	\fn
	cbz	x0, 1f
	.cfi_remember_state
	pop_callers_keep_result
	drop_frame
	ret
1:	.cfi_restore_state
	pop_callers
	ldr	x17, [sp]
	drop_frame
	jump_to_original
	end_function \name
	.endm

	call_through_throw ag_entry_alloc_throw, ag_alloc_throw
	call_through_throw ag_entry_sample_alloc_throw, ag_sample_alloc_throw

	.macro push_tail
	sub	sp, sp, #CALLERS + 16
	.cfi_adjust_cfa_offset CALLERS + 16
	store_callers
	stp	x17, x30, [sp, #CALLERS]
	.cfi_offset x30, -8
	.endm

	.macro pop_tail
	ldr	x0, [sp]
	load_callers_but_x0
	ldp	x17, x30, [sp, #CALLERS]
	.cfi_restore x30
	add	sp, sp, #CALLERS + 16
	.cfi_adjust_cfa_offset -(CALLERS + 16)
	.endm

	/*
	 * C: bool ag_free(void *block, const struct ss_desc *, return address).  True: the thread
	 * is in a hook already, so ag_free_nested() must classify the call, with a frame to unwind
	 * from.
	 */
	function ag_entry_free
	gate_or_original
	push_tail
	mov	x1, x17
	mov	x2, x30
	bl	ag_free
	and	w16, w0, #0xff
	pop_tail
	cbnz	w16, 1f
	jump_to_original
1:	push_frame
	push_callers
	add	x1, sp, #CALLERS
	bl	ag_free_nested
	pop_callers
	ldr	x17, [sp]
	drop_frame
	jump_to_original
	end_function ag_entry_free

	/*
	 * Sampling.  The thread's countdown is found by a hash of its thread pointer
	 * (formats/session.h).  A request that does not reach the next point only subtracts its
	 * bytes and enters the original.  \product: the size is x0 * x1.  A forked child has no
	 * countdown: the wiped gate sends it to the slow path, which enters the original.
	 */
	.macro counted name, product
	function \name
	stp	x14, x15, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	mrs	x16, tpidr_el0
	mov	w15, #0x8647
	movk	w15, #0x61c8, lsl #16
	mul	x15, x16, x15
	lsr	x15, x15, #24
	and	x15, x15, #(511 << 6)
	adrp	x14, ag_locals
	add	x14, x14, :lo12:ag_locals
	add	x14, x14, x15
	ldr	x15, [x14]
	eor	x15, x15, x16
	cbnz	x15, 1f
	ldr	x15, [x14, #8]
	.if \product
	mul	x16, x0, x1
	sub	x15, x15, x16
	.else
	sub	x15, x15, x0
	.endif
	str	x15, [x14, #8]
	tbnz	x15, #63, 1f
	.cfi_remember_state
	ldp	x14, x15, [sp], #16
	.cfi_adjust_cfa_offset -16
	jump_to_original
1:	.cfi_restore_state
	ldp	x14, x15, [sp], #16
	.cfi_adjust_cfa_offset -16
	gate_or_original
	push_frame
	push_callers
	add	x5, sp, #CALLERS
	bl	ag_sample_alloc
	pop_callers_keep_result
	drop_frame
	ret
	end_function \name
	.endm

	counted ag_entry_sample_malloc, 0
	counted ag_entry_sample_calloc, 1

	/* A block is not sampled if no sampled block has its hash. */
	function ag_entry_sample_free
	str	x15, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	lsr	x16, x0, #4
	eor	x16, x16, x16, lsr #16
	and	x16, x16, #0xffff
	adrp	x15, ag_filter
	add	x15, x15, :lo12:ag_filter
	ldrb	w16, [x15, x16]
	ldr	x15, [sp], #16
	.cfi_adjust_cfa_offset -16
	cbnz	w16, 1f
	jump_to_original
1:	gate_or_original
	push_tail
	mov	x1, x17
	bl	ag_sample_free
	pop_tail
	jump_to_original
	end_function ag_entry_sample_free
