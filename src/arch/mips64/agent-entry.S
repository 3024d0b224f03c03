/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entry code of the hooks: a slot loads the address of its struct ss_desc into $1 and jumps here
 * through $25.  Those two are free at a function's entry ($1 is the assembler's, $25 the function's
 * own address, which the relocated copy loads again); all other registers belong to the caller.
 *
 * Every entry first checks the gate.  If it is zero (off, or a forked child, whose gate page is
 * wiped), the relocated function is entered at once, without a frame of the agent.
 *
 *	call-through (alloc, realloc, maps)	 tail (free): no frame of the agent remains
 *	+96 stack pointer at entry		 +160 stack pointer at entry
 *	+88 $31, the return address		 +136 $31
 *	+72 $28   +80 $30			 +128 $1 = desc
 *	 +8 ... +64 $16 to $23			  +0 the caller-saved registers
 *	 +0 $1 = desc
 *	below the frame: the caller-saved registers
 *
 * The agent's C code is not position independent by the ABI's method, which would need $28: calls
 * are made relative to the program counter (agent-relative.h).
 */
	.section .note.GNU-stack, "", @progbits
	.text
	.set	noreorder
	.set	noat
	.set	nomacro

#define FRAME	 96
#define FRAME_RA 88
#define CALLERS	 160
#define SAVED_AT 128
#define SAVED_RA 136
#define DESC_ORIGINAL 0
#define DESC_GATE     48

	.macro gate_or_original
	ld	$25, DESC_GATE($1)
	lw	$25, 0($25)
	beq	$25, $0, ag_original
	nop
	.endm

	.macro push_frame
	daddiu	$29, $29, -FRAME
	.cfi_adjust_cfa_offset FRAME
	sd	$1, 0($29)
	sd	$16, 8($29)
	sd	$17, 16($29)
	sd	$18, 24($29)
	sd	$19, 32($29)
	sd	$20, 40($29)
	sd	$21, 48($29)
	sd	$22, 56($29)
	sd	$23, 64($29)
	sd	$28, 72($29)
	sd	$30, 80($29)
	sd	$31, FRAME_RA($29)
	.cfi_offset 31, FRAME_RA - FRAME
	.endm

	/* C code has preserved the callee-saved registers. */
	.macro drop_frame
	ld	$31, FRAME_RA($29)
	daddiu	$29, $29, FRAME
	.cfi_restore 31
	.cfi_adjust_cfa_offset -FRAME
	.endm

	/*
	 * Caller-saved registers are preserved, too, hi and lo included: gcc determines which of
	 * them a function of the same file leaves unchanged, and its callers rely on that
	 * (-fipa-ra, part of -O2).  $9, the sixth argument, is stored directly below the frame,
	 * where ag_frame_mmap() reads it.
	 */
	.macro push_callers
	daddiu	$29, $29, -CALLERS
	.cfi_adjust_cfa_offset CALLERS
	sd	$2, 0($29)
	sd	$3, 8($29)
	sd	$4, 16($29)
	sd	$5, 24($29)
	sd	$6, 32($29)
	sd	$7, 40($29)
	sd	$8, 48($29)
	sd	$10, 56($29)
	sd	$11, 64($29)
	sd	$12, 72($29)
	sd	$13, 80($29)
	sd	$14, 88($29)
	sd	$15, 96($29)
	sd	$24, 104($29)
	mfhi	$25
	sd	$25, 112($29)
	mflo	$25
	sd	$25, 120($29)
	sd	$1, SAVED_AT($29)
	sd	$31, SAVED_RA($29)
	sd	$9, 152($29)
	.endm

	/* All except $2, which has the result. */
	.macro pop_callers_keep_result
	ld	$25, 112($29)
	mthi	$25
	ld	$25, 120($29)
	mtlo	$25
	ld	$3, 8($29)
	ld	$4, 16($29)
	ld	$5, 24($29)
	ld	$6, 32($29)
	ld	$7, 40($29)
	ld	$8, 48($29)
	ld	$10, 56($29)
	ld	$11, 64($29)
	ld	$12, 72($29)
	ld	$13, 80($29)
	ld	$14, 88($29)
	ld	$15, 96($29)
	ld	$24, 104($29)
	ld	$9, 152($29)
	daddiu	$29, $29, CALLERS
	.cfi_adjust_cfa_offset -CALLERS
	.endm

	.macro pop_callers
	ld	$2, 0($29)
	pop_callers_keep_result
	.endm

	.macro jump_to_original
	ld	$25, DESC_ORIGINAL($1)
	jr	$25
	nop
	.endm

	.macro function name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	.endm

	.macro end_function name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* Must be first: no hook's entry may be at offset 0 of the image (inject/blob.c). */
	.hidden	ag_original
	function ag_original
	jump_to_original
	end_function ag_original

	/* C: long ag_call_clock(function, clock, now): a tail call. */
	.hidden	ag_call_clock
	function ag_call_clock
	move	$25, $4
	move	$4, $5
	jr	$25
	move	$5, $6
	end_function ag_call_clock

	/* C: uintptr_t fn(a0, a1, a2, a3, a4, struct ag_frame *) */
	.macro call_through name, fn, result=1
	function \name
	gate_or_original
	push_frame
	push_callers
	bal	\fn
	daddiu	$9, $29, CALLERS
	.if \result
	pop_callers_keep_result
	.else
	pop_callers
	.endif
	drop_frame
	jr	$31
	nop
	end_function \name
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
	/*
	 */
	call_through ag_entry_sample_malloc, ag_sample_alloc
	call_through ag_entry_sample_calloc, ag_sample_alloc
	call_through ag_entry_sample_posix_memalign, ag_sample_posix_memalign
	call_through ag_entry_sample_realloc, ag_sample_realloc
	call_through ag_entry_sample_xallocx, ag_sample_xallocx

	/*
	 * Throwing operator new: C calls the nothrow sibling.  If that returns 0, the original is
	 * entered without a frame of the agent, so that it can throw.
	 */
	.macro call_through_throw name, fn
	function \name
	gate_or_original
	push_frame
	push_callers
	bal	\fn
	daddiu	$9, $29, CALLERS
	pop_callers_keep_result
	ld	$1, 0($29)
	drop_frame
	beq	$2, $0, ag_original
	nop
	jr	$31
	nop
	end_function \name
	.endm

	call_through_throw ag_entry_alloc_throw, ag_alloc_throw
	call_through_throw ag_entry_sample_alloc_throw, ag_sample_alloc_throw

	.macro push_tail
	push_callers
	.cfi_offset 31, SAVED_RA - CALLERS
	move	$5, $1
	move	$6, $31
	.endm

	.macro pop_tail
	ld	$1, SAVED_AT($29)
	ld	$31, SAVED_RA($29)
	.cfi_restore 31
	pop_callers
	.endm

	/*
	 * C: bool ag_free(void *block, const struct ss_desc *, return address).  True: the thread
	 * is in a hook already, so ag_free_nested() must classify the call, with a frame to unwind
	 * from.
	 */
	function ag_entry_free
	gate_or_original
	push_tail
	bal	ag_free
	nop
	bne	$2, $0, 1f
	nop
	pop_tail
	jump_to_original
	.cfi_adjust_cfa_offset CALLERS
	.cfi_offset 31, SAVED_RA - CALLERS
1:	pop_tail
	push_frame
	push_callers
	bal	ag_free_nested
	daddiu	$5, $29, CALLERS
	pop_callers
	ld	$1, 0($29)
	drop_frame
	jump_to_original
	end_function ag_entry_free

	function ag_entry_sample_free
	gate_or_original
	push_tail
	bal	ag_sample_free
	nop
	pop_tail
	jump_to_original
	end_function ag_entry_sample_free
