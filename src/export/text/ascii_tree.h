/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The call tree as text in bytehound's layout: size, count, time of the first and the last
 * allocation, and the frame.  Frames with the same source line, or without one the same name, are
 * one node.  Children are in the order of their first stack.
 */
#ifndef EXPORT_TEXT_ASCII_TREE_H
#define EXPORT_TEXT_ASCII_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "model/group.h"

struct model;

/* @cost: one in bytes.  For COST_LEAKED the times are those of the live blocks.  Return: 0 or a
 * negative errno. */
int ascii_tree_write(struct model *m, enum cost cost, FILE *out);

/* Formats a size in decimal units, ten columns wide.  Return: @buf, of @room bytes. */
const char *ascii_size(uint64_t size, char *buf, size_t room);

#endif
