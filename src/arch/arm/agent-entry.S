/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entry code of the hooks: a slot loads the address of its struct ss_desc into ip and jumps here,
 * from A32 and from Thumb.  ip is free at a function's entry (AAPCS 6.1.1); all other registers
 * belong to the caller.
 *
 * Every entry first checks the gate.  If it is zero (off, or a forked child, whose gate page is
 * wiped), the relocated function is entered without a frame of the agent.  In sampling mode only
 * the slow paths check.
 *
 *	+52 return address (lr)		struct ag_frame from +16
 *	+48 ip = desc
 *	+16 r4 to r11
 *	 +0 r0 to r3: preserved, too, because gcc determines which caller-saved registers a
 *	    function of the same file leaves unchanged, and its callers rely on that
 *	    (-fipa-ra, part of -O2)
 */
	.syntax unified
	.arm
	.cfi_sections .debug_frame
	.section .note.GNU-stack, "", %progbits
	.text

	.macro push_frame
	push	{r4-r11, ip, lr}
	.cfi_def_cfa_offset 40
	.cfi_offset lr, -4
	.cfi_offset r11, -12
	.cfi_offset r10, -16
	.cfi_offset r9, -20
	.cfi_offset r8, -24
	.cfi_offset r7, -28
	.cfi_offset r6, -32
	.cfi_offset r5, -36
	.cfi_offset r4, -40
	push	{r0-r3}
	.cfi_def_cfa_offset 56
	.endm

	/* C code has preserved the callee-saved registers: only the stack pointer is moved. */
	.macro drop_frame
	pop	{r0-r3}
	.cfi_def_cfa_offset 40
	add	sp, sp, #32
	.cfi_def_cfa_offset 8
	pop	{ip, lr}
	.cfi_def_cfa_offset 0
	.endm

	/* All except r0, which has the result. */
	.macro return_result
	add	sp, sp, #4
	.cfi_def_cfa_offset 52
	pop	{r1-r3}
	.cfi_def_cfa_offset 40
	add	sp, sp, #36
	.cfi_def_cfa_offset 4
	pop	{pc}
	.endm

	.macro address reg, symbol
	movw	\reg, #:lower16:(\symbol - (8000f + 8))
	movt	\reg, #:upper16:(\symbol - (8000f + 8))
8000:	add	\reg, pc, \reg
	.endm

	/* lr must be saved already. */
	.macro gate_or label
	address lr, ag_gate
	ldr	lr, [lr]
	cmp	lr, #0
	beq	\label
	.endm

	/* C: word fn(a0, a1, a2, a3, a4, struct ag_frame *), the last two on the stack */
	.macro call_body fn
	ldr	ip, [sp, #56]
	add	lr, sp, #16
	push	{ip, lr}
	.cfi_def_cfa_offset 64
	bl	\fn
	add	sp, sp, #8
	.cfi_def_cfa_offset 56
	.endm

	.globl	ag_original
	.hidden	ag_original
	.type	ag_original, %function
ag_original:
	.cfi_startproc
	ldr	pc, [ip]
	.cfi_endproc
	.size	ag_original, . - ag_original
	.balign	16

	.macro begin name
	.globl	\name
	.type	\name, %function
	.balign	16
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro call_through name, fn, result=1
	begin	\name
	push_frame
	gate_or	1f
	call_body \fn
	.cfi_remember_state
	.if \result
	return_result
	.else
	drop_frame
	bx	lr
	.endif
	.cfi_restore_state
1:	drop_frame
	ldr	pc, [ip]
	end	\name
	.endm

	call_through ag_entry_alloc, ag_alloc
	call_through ag_entry_zero_alloc, ag_zero_alloc
	call_through ag_entry_free_traced, ag_free_traced
	call_through ag_entry_posix_memalign, ag_posix_memalign
	call_through ag_entry_realloc, ag_realloc
	call_through ag_entry_xallocx, ag_xallocx
	call_through ag_entry_free_through, ag_free_through, 0
	call_through ag_entry_mmap, ag_mmap
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

	/*
	 * Throwing operator new: C calls the nothrow sibling.  If that returns 0, the original is
	 * entered without a frame of the agent, so that it can throw.
	 */
	.macro call_through_throw name, fn
	begin	\name
	push_frame
	gate_or	1f
	call_body \fn
	cmp	r0, #0
	beq	1f
	.cfi_remember_state
	return_result
	.cfi_restore_state
1:	drop_frame
	ldr	pc, [ip]
	end	\name
	.endm

	call_through_throw ag_entry_alloc_throw, ag_alloc_throw
	call_through_throw ag_entry_sample_alloc_throw, ag_sample_alloc_throw

	/* Tail (free): no frame of the agent is on the stack while the original runs. */
	.macro push_callers
	push	{r0-r3, ip, lr}
	.cfi_def_cfa_offset 24
	.cfi_offset lr, -4
	.endm

	.macro pop_callers
	pop	{r0-r3, ip, lr}
	.cfi_def_cfa_offset 0
	.cfi_same_value lr
	.endm

	/*
	 * C: bool ag_free(block, const struct ss_desc *, return address).  True: the thread is in a
	 * hook already, so ag_free_nested() must classify the call, with a frame to unwind from.
	 */
	begin	ag_entry_free
	push_callers
	.cfi_remember_state
	gate_or	2f
	mov	r1, ip
	ldr	r2, [sp, #20]
	bl	ag_free
	cmp	r0, #0
	pop_callers
	bne	1f
	ldr	pc, [ip]
1:	push_frame
	add	r1, sp, #16
	bl	ag_free_nested
	drop_frame
	ldr	pc, [ip]
	.cfi_restore_state
2:	pop_callers
	ldr	pc, [ip]
	end	ag_entry_free

	/*
	 * Sampling.  The thread's countdown is found by a hash of its thread pointer
	 * (formats/session.h).  A request that does not reach the next point only subtracts its
	 * bytes and enters the original.  \product: the size is r0 * r1.  A forked child has no
	 * countdown: the wiped gate sends it to the slow path, which enters the original.
	 */
	.macro counted name, product
	begin	\name
	push	{r0-r5}
	.cfi_def_cfa_offset 24
	.cfi_offset r4, -8
	.cfi_offset r5, -4
	mrc	p15, 0, r2, c13, c0, 3
	movw	r3, #0x8647
	movt	r3, #0x61c8
	umull	r3, r4, r2, r3
	lsr	r3, r3, #30
	orr	r3, r3, r4, lsl #2
	ubfx	r3, r3, #0, #9
	address	r4, ag_locals
	add	r3, r4, r3, lsl #6
	ldrd	r4, r5, [r3]
	cmp	r4, r2
	cmpeq	r5, #0
	bne	1f
	.if \product
	umull	r0, r1, r0, r1
	.else
	mov	r1, #0
	.endif
	add	r3, r3, #8
2:	ldrexd	r4, r5, [r3]
	subs	r4, r4, r0
	sbc	r5, r5, r1
	strexd	r2, r4, r5, [r3]
	cmp	r2, #0
	bne	2b
	cmp	r5, #0
	blt	1f
	.cfi_remember_state
	pop	{r0-r5}
	.cfi_def_cfa_offset 0
	.cfi_same_value r4
	.cfi_same_value r5
	ldr	pc, [ip]
	.cfi_restore_state
1:	pop	{r0-r5}
	.cfi_def_cfa_offset 0
	.cfi_same_value r4
	.cfi_same_value r5
	push_frame
	gate_or	3f
	call_body ag_sample_alloc
	.cfi_remember_state
	return_result
	.cfi_restore_state
3:	drop_frame
	ldr	pc, [ip]
	end	\name
	.endm

	counted ag_entry_sample_malloc, 0
	counted ag_entry_sample_calloc, 1

	/* A block is not sampled if no sampled block has its hash. */
	begin	ag_entry_sample_free
	push	{r1, r2}
	.cfi_def_cfa_offset 8
	lsr	r1, r0, #4
	eor	r1, r1, r1, lsr #16
	uxth	r1, r1
	address	r2, ag_filter
	ldrb	r1, [r2, r1]
	cmp	r1, #0
	pop	{r1, r2}
	.cfi_def_cfa_offset 0
	bne	1f
	ldr	pc, [ip]
1:	push_callers
	gate_or	2f
	mov	r1, ip
	ldr	r2, [sp, #20]
	bl	ag_sample_free
2:	pop_callers
	ldr	pc, [ip]
	end	ag_entry_sample_free
