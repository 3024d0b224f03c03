/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Groups leaks of the same type and size, and of the same allocation stack if that is known.  A
 * report shows each cluster as one line. */
#ifndef LEAKS_CLUSTERS_H
#define LEAKS_CLUSTERS_H

#include "leaks/graph.h"
#include "leaks/types.h"

#define CLUSTER_SAMPLES 3
#define PREVIEW_BYTES	32

struct cluster {
	uint32_t number; /* as in struct leak; independent of the list's order */
	char *type;	 /* "app::Node", or the shape: "text", "pointers", ... */
	char *owner;	 /* file related to the block (struct type), or NULL */
	uint64_t size;	 /* usable bytes of each block */
	uint64_t count, bytes;
	uint64_t indirect_count, indirect_bytes; /* blocks that only these blocks keep reachable */
	uint64_t cycles;			 /* how many of them are on cycles */
	uint64_t known_count; /* how many the baseline has; the report is about the others */
	uint64_t sample[CLUSTER_SAMPLES];
	uint32_t samples;
	char preview[PREVIEW_BYTES + 1]; /* of a text, if content may be shown */
	bool suppressed;
	struct leak_source source; /* of the oldest block; .stack is that of all */
	uint64_t youngest_ns;	   /* age of the youngest */
	bool several_threads;
};
/* The beginning of a leaked text. */
struct preview {
	uint32_t block;
	char text[PREVIEW_BYTES + 1];
};
struct clusters {
	VEC(struct cluster) list;     /* largest first */
	VEC(struct preview) previews; /* by block; only of the first MAX_PREVIEWS texts */
};

/* A leak in the form in which two snapshots are compared. */
struct sighting {
	uint64_t addr, size, hash;
};
struct sightings {
	VEC(struct sighting) list; /* by address */
};

/* Lists the direct leaks of @l, with a hash of their contents.  @seen: filled, for
 * sightings_confirm().  Return: 0 or -ENOMEM. */
int sightings_take(struct sightings *seen, const struct graph *g, const struct leaks *l,
		   struct image *img);
/* Drops from @l the leaks that the earlier snapshot did not have, or that were other blocks then.
 * Return: 0 or -ENOMEM. */
int sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		      const struct sightings *now);
void sightings_free(struct sightings *s);

/* Groups the leaks of @l.  @content: bytes of the program's memory may be shown.  Return: 0 or
 * -ENOMEM. */
int clusters_make(struct clusters *c, const struct graph *g, struct leaks *l, struct image *img,
		  bool content);
/* Makes the clusters again, split by @source, an array with an entry for each direct leak.  Return:
 * 0 or -ENOMEM. */
int clusters_split(struct clusters *c, const struct graph *g, struct leaks *l,
		   const struct leak_source *source);
void clusters_free(struct clusters *c);

/* Access to the names of a stack's frames. */
struct stack_names {
	/* Return: does @matches(@pattern, NAME) hold for a function or file of @stack? */
	bool (*any)(void *ctx, uint32_t stack, bool (*matches)(const char *, const char *),
		    const char *pattern);
	void *ctx;
};
/* Marks clusters whose type, owner or stack (@names; NULL: not known) matches a line of a
 * suppression file.  Its format is LeakSanitizer's: "leak:pattern"; '*' matches anything, '^' and
 * '$' anchor, '#' starts a comment.  Return: 0 or -errno with @err. */
int clusters_suppress(struct clusters *c, const char *file, const struct stack_names *names,
		      struct mp_err *err);
/* Subtracts the leaks of a former report (its JSON), first from clusters without a stack: blocks
 * that are in a recording are younger.  Return: 0 or -errno with @err. */
int clusters_baseline(struct clusters *c, const char *file, struct mp_err *err);

#endif
