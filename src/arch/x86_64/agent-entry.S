/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entry code of the hooks: a slot loads the address of its struct ss_desc into r11 and jumps here.
 * r10, r11 and rax are free at a function's entry (System V psABI 3.2.1; the hooked functions use
 * no variadic arguments in vector registers); all other registers belong to the caller.
 *
 * Every entry first checks the gate.  If it is zero (off, or a forked child, whose gate page is
 * wiped), the relocated function is entered at once, without a frame of the agent.  In sampling
 * mode only the slow paths check.
 *
 *	call-through (alloc, realloc, maps)	 tail (free): no frame of the agent remains
 *	+56 return address of the caller	 +72 return address
 *	+48 r15  +40 r14  +32 r13  +24 r12	 +8 the caller-saved registers
 *	+16 rbp   +8 rbx   +0 r11 = desc	  +0 r11 = desc
 *	below the frame: the caller-saved registers
 */
	.section .note.GNU-stack, "", @progbits
	.text

	.macro gate_or_original
	endbr64
	cmpl	$0, ag_gate(%rip)
	je	ag_original
	.endm

	.macro push_frame
	push	%r15
	.cfi_adjust_cfa_offset 8
	push	%r14
	.cfi_adjust_cfa_offset 8
	push	%r13
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%r11
	.cfi_adjust_cfa_offset 8
	.endm

	/*
	 * Caller-saved registers are preserved, too: gcc determines which of them a function of the
	 * same file leaves unchanged, and its callers rely on that (-fipa-ra, part of -O2).  r9,
	 * the sixth argument, is stored directly below the frame, where ag_frame_mmap() reads it.
	 */
	.macro push_callers
	push	%r9
	.cfi_adjust_cfa_offset 8
	push	%r8
	.cfi_adjust_cfa_offset 8
	push	%rcx
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%r10
	.cfi_adjust_cfa_offset 8
	push	%rax
	.cfi_adjust_cfa_offset 8
	.endm

	.macro pop_callers
	pop	%rax
	.cfi_adjust_cfa_offset -8
	pop	%r10
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	pop	%r8
	.cfi_adjust_cfa_offset -8
	pop	%r9
	.cfi_adjust_cfa_offset -8
	.endm

	/* All except rax, which has the result. */
	.macro pop_callers_keep_result
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%r10
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	pop	%r8
	.cfi_adjust_cfa_offset -8
	pop	%r9
	.cfi_adjust_cfa_offset -8
	.endm

	/* C code has preserved the callee-saved registers: only the stack pointer is moved. */
	.macro drop_frame_and_return
	add	$56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
	.cfi_adjust_cfa_offset 56
	.endm

	.globl	ag_original
	.hidden	ag_original
	.type	ag_original, @function
ag_original:
	.cfi_startproc
	notrack jmp *(%r11)
	.cfi_endproc
	.size	ag_original, . - ag_original

	/* C: uint64_t fn(a0, a1, a2, a3, a4, struct ag_frame *) */
	.macro call_through name, fn, result=1
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	gate_or_original
	push_frame
	push_callers
	lea	64(%rsp), %r9
	call	\fn
	.if \result
	pop_callers_keep_result
	.else
	pop_callers
	.endif
	drop_frame_and_return
	.cfi_endproc
	.size	\name, . - \name
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
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	gate_or_original
	push_frame
	push_callers
	lea	64(%rsp), %r9
	call	\fn
	pop_callers_keep_result
	mov	(%rsp), %r11
	add	$56, %rsp
	.cfi_adjust_cfa_offset -56
	test	%rax, %rax
	je	ag_original
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	call_through_throw ag_entry_alloc_throw, ag_alloc_throw
	call_through_throw ag_entry_sample_alloc_throw, ag_sample_alloc_throw

	/*
	 * C: bool ag_free(void *block, const struct ss_desc *, return address).  True: the thread
	 * is in a hook already, so ag_free_nested() must classify the call, with a frame to unwind
	 * from.
	 */
	.globl	ag_entry_free
	.type	ag_entry_free, @function
	.balign	16
ag_entry_free:
	.cfi_startproc
	gate_or_original
	push_callers
	push	%r11
	.cfi_adjust_cfa_offset 8
	mov	%r11, %rsi
	mov	72(%rsp), %rdx
	call	ag_free
	test	%al, %al
	pop	%r11
	.cfi_adjust_cfa_offset -8
	pop_callers
	jne	1f
	notrack jmp *(%r11)
1:	push_frame
	push_callers
	lea	64(%rsp), %rsi
	call	ag_free_nested
	pop_callers
	mov	(%rsp), %r11
	add	$56, %rsp
	.cfi_adjust_cfa_offset -56
	notrack jmp *(%r11)
	.cfi_endproc
	.size	ag_entry_free, . - ag_entry_free

	/*
	 * Sampling.  The thread's countdown is found by a hash of its thread pointer
	 * (formats/session.h).  A request that does not reach the next point only subtracts its
	 * bytes and enters the original.  \product: the size is rdi * rsi.  A forked child has no
	 * countdown: the wiped gate sends it to the slow path, which enters the original.
	 */
	.macro counted name, product
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	push	%r10
	.cfi_adjust_cfa_offset 8
	mov	%fs:0, %rax
	imul	$0x61c88647, %rax, %r10
	shr	$24, %r10
	and	$(511 << 6), %r10d
	lea	ag_locals(%rip), %rax
	add	%rax, %r10
	mov	%fs:0, %rax
	cmp	%rax, (%r10)
	jne	1f
	.if \product
	mov	%rdi, %rax
	imul	%rsi, %rax
	sub	%rax, 8(%r10)
	.else
	sub	%rdi, 8(%r10)
	.endif
	js	1f
	pop	%r10
	.cfi_adjust_cfa_offset -8
	notrack jmp *(%r11)
	.cfi_adjust_cfa_offset 8
1:	pop	%r10
	.cfi_adjust_cfa_offset -8
	cmpl	$0, ag_gate(%rip)
	je	ag_original
	push_frame
	push_callers
	lea	64(%rsp), %r9
	call	ag_sample_alloc
	pop_callers_keep_result
	drop_frame_and_return
	.cfi_endproc
	.size	\name, . - \name
	.endm

	counted ag_entry_sample_malloc, 0
	counted ag_entry_sample_calloc, 1

	/* A block is not sampled if no sampled block has its hash. */
	.globl	ag_entry_sample_free
	.type	ag_entry_sample_free, @function
	.balign	16
ag_entry_sample_free:
	.cfi_startproc
	endbr64
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	%r10
	.cfi_adjust_cfa_offset 8
	mov	%rdi, %rax
	shr	$4, %rax
	mov	%rax, %r10
	shr	$16, %r10
	xor	%r10, %rax
	movzwl	%ax, %eax
	lea	ag_filter(%rip), %r10
	cmpb	$0, (%r10, %rax)
	pop	%r10
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	jne	1f
	notrack jmp *(%r11)
1:	cmpl	$0, ag_gate(%rip)
	je	ag_original
	push_callers
	push	%r11
	.cfi_adjust_cfa_offset 8
	mov	%r11, %rsi
	mov	72(%rsp), %rdx
	call	ag_sample_free
	pop	%r11
	.cfi_adjust_cfa_offset -8
	pop_callers
	notrack jmp *(%r11)
	.cfi_endproc
	.size	ag_entry_sample_free, . - ag_entry_sample_free
