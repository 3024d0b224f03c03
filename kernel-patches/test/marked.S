/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code whose registers are known at every instruction that matters (marked.h). */
#include <regdef.h>

	.set	noreorder
	.set	noat
	.text

	/* The callee-saved registers, $gp and the table go to the stack. */
	.macro	enter
	daddiu	sp, sp, -112
	sd	s0, 0(sp)
	sd	s1, 8(sp)
	sd	s2, 16(sp)
	sd	s3, 24(sp)
	sd	s4, 32(sp)
	sd	s5, 40(sp)
	sd	s6, 48(sp)
	sd	s7, 56(sp)
	sd	gp, 64(sp)
	sd	s8, 72(sp)
	sd	ra, 80(sp)
	sd	a0, 88(sp)
	sd	sp, 29*8(a0)
	.endm

	.macro	leave
	ld	s0, 0(sp)
	ld	s1, 8(sp)
	ld	s2, 16(sp)
	ld	s3, 24(sp)
	ld	s4, 32(sp)
	ld	s5, 40(sp)
	ld	s6, 48(sp)
	ld	s7, 56(sp)
	ld	gp, 64(sp)
	ld	s8, 72(sp)
	ld	ra, 80(sp)
	jr	ra
	 daddiu	sp, sp, 112
	.endm

	.macro	load_static
	ld	s0, 16*8(a0)
	ld	s1, 17*8(a0)
	ld	s2, 18*8(a0)
	ld	s3, 19*8(a0)
	ld	s4, 20*8(a0)
	ld	s5, 21*8(a0)
	ld	s6, 22*8(a0)
	ld	s7, 23*8(a0)
	ld	s8, 30*8(a0)
	.endm

	.globl	marked_call
	.type	marked_call, @function
	.ent	marked_call
marked_call:
	enter
	dla	t0, marked_probe
	sd	t0, 0(a0)
	dla	t0, 1f
	sd	t0, 31*8(a0)
	load_static
	ld	$1, 1*8(a0)
	ld	$2, 2*8(a0)
	ld	$3, 3*8(a0)
	ld	$5, 5*8(a0)
	ld	$6, 6*8(a0)
	ld	$7, 7*8(a0)
	ld	$8, 8*8(a0)
	ld	$9, 9*8(a0)
	ld	$10, 10*8(a0)
	ld	$11, 11*8(a0)
	ld	$12, 12*8(a0)
	ld	$13, 13*8(a0)
	ld	$14, 14*8(a0)
	ld	$15, 15*8(a0)
	ld	$24, 24*8(a0)
	ld	$25, 25*8(a0)
	ld	gp, 28*8(a0)
	bal	marked_probe
	 ld	$4, 4*8(a0)
1:	leave
	.end	marked_call
	.size	marked_call, . - marked_call

	.globl	marked_probe
	.type	marked_probe, @function
	.ent	marked_probe
marked_probe:
	daddiu	v0, zero, 7
	jr	ra
	 nop
	.end	marked_probe
	.size	marked_probe, . - marked_probe

	.globl	marked_spin
	.globl	marked_spin_loop
	.globl	marked_spin_end
	.type	marked_spin, @function
	.ent	marked_spin
marked_spin:
	enter
	load_static
marked_spin_loop:
	bnez	a1, marked_spin_loop
	 daddiu	a1, a1, -1
marked_spin_end:
	leave
	.end	marked_spin
	.size	marked_spin, . - marked_spin

	.globl	marked_syscall
	.type	marked_syscall, @function
	.ent	marked_syscall
marked_syscall:
	enter
	load_static
	move	v0, a1
	move	a0, a2
	move	a1, a3
	move	a2, a4
	syscall
	leave
	.end	marked_syscall
	.size	marked_syscall, . - marked_syscall

	.section .note.GNU-stack, "", @progbits
