/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The call tree as text in the layout that users of bytehound know: size, count, time of the first
 * and the last allocation, and the frame.  Frames are one node when their source line is the same,
 * or their name where there is no line; children stand in the order of their first stack.
 */
#ifndef REPORT_ASCII_TREE_H
#define REPORT_ASCII_TREE_H

#include <stdio.h>
#include "report/model.h"

/* @cost: in bytes.  Of COST_LEAKED the times are those of the live blocks.  Return: 0 or a negative
 * errno. */
int ascii_tree_write(struct model *m, enum cost cost, FILE *out);

#endif
