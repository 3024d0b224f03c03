/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes pprof's profile.proto (export/profile.proto): alloc_objects, alloc_space, inuse_objects
 * and inuse_space of each stack, with mappings, build ids, functions, lines and inlined frames.
 * The stream is not compressed here; readers expect gzip.
 */
#ifndef EXPORT_PPROF_H
#define EXPORT_PPROF_H

#include <stdio.h>

struct model;
struct profile_window;

/* Writes the profile of the whole recording.  Return: 0 or a negative errno. */
int pprof_write(struct model *m, FILE *out);
/* Writes the profile of one period.  Return: 0 or a negative errno. */
int pprof_write_window(struct model *m, const struct profile_window *w, FILE *out);

struct tree_node;
/**
 * pprof_write_tree() - write a tree of names as a profile of inuse_objects and inuse_space
 * @root: each node's cost and count contain those of its children
 * @comment: what the tree is about
 * Return: 0 or a negative errno.
 */
int pprof_write_tree(const struct tree_node *root, const char *comment, FILE *out);

#endif
