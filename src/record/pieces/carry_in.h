/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the heap taken over from the previous recorder at the head of the new recording. */
#ifndef RECORD_PIECES_CARRY_IN_H
#define RECORD_PIECES_CARRY_IN_H

struct aggregator;
struct carry;
/* Adds the heap of the previous recorder to live table, sums and file. */
void carry_in(struct aggregator *a, const struct carry *c);

#endif
