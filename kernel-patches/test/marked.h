/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code that runs with known values in its registers.  A table has 32 places, one for each
 * register; place 0 is for the program counter.  What the code itself decides ($29, and for
 * marked_call() also $31 and the program counter) it writes into the table; everything else is
 * the caller's choice.
 */
#ifndef TEST_MARKED_H
#define TEST_MARKED_H

#include <stdint.h>

/* Calls marked_probe() with the values of @table in all registers but $26 and $27.  Return: 7. */
long marked_call(uint64_t table[32]);
long marked_probe(void);

/*
 * Counts @turns down with the values of @table in $16 to $23 and $30, between marked_spin_loop
 * and marked_spin_end.
 */
void marked_spin(uint64_t table[32], unsigned long turns);
extern const char marked_spin_loop[], marked_spin_end[];

/* Makes system call @number with the values of @table in $16 to $23 and $30. */
long marked_syscall(uint64_t table[32], long number, long a, long b, long c);

#endif
