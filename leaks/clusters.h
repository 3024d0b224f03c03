/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaks of the same type and size, and from the same place where that is known, together: what a
 * report shows as one line. */
#ifndef LEAKS_CLUSTERS_H
#define LEAKS_CLUSTERS_H

#include "leaks/graph.h"
#include "leaks/types.h"

#define CLUSTER_SAMPLES 3
#define PREVIEW_BYTES	32

struct cluster {
	uint32_t number; /* as in struct leak, whatever the order */
	char *type;	 /* "app::Node", or the shape: "text", "pointers", ... */
	char *owner;	 /* file that the block has to do with, or NULL */
	uint64_t size;	 /* usable bytes of each block */
	uint64_t count, bytes;
	uint64_t indirect_count, indirect_bytes; /* what only these blocks keep */
	uint64_t cycles;			 /* how many of them keep themselves */
	uint64_t known_count; /* of the baseline; the report is about the others */
	uint64_t sample[CLUSTER_SAMPLES];
	uint32_t samples;
	char preview[PREVIEW_BYTES + 1]; /* of text, unless told not to */
	bool suppressed;
	struct leak_source source; /* of the oldest block; .stack of all */
	uint64_t youngest_ns;	   /* age of the youngest */
	bool several_threads;
};
/* What a leaked text says. */
struct preview {
	uint32_t block;
	char text[PREVIEW_BYTES + 1];
};
struct clusters {
	VEC(struct cluster) list;     /* largest first */
	VEC(struct preview) previews; /* by block; of the first some thousand texts */
};

/* One leak as it is compared between two snapshots. */
struct sighting {
	uint64_t addr, size, hash;
};
struct sightings {
	VEC(struct sighting) list; /* by address */
};

/* Looks at the direct leaks of @l, with what they hold.  @seen: filled, for clusters_confirm().
 * Return: 0 or -ENOMEM. */
int sightings_take(struct sightings *seen, const struct graph *g, const struct leaks *l,
		   struct image *img);
/* Drops from @l what was not there before, or was another then.  Return: 0 or -ENOMEM. */
int sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		      const struct sightings *now);
void sightings_free(struct sightings *s);

/* @content: may bytes of the program be shown?  Return: 0 or -ENOMEM. */
int clusters_make(struct clusters *c, const struct graph *g, struct leaks *l, struct image *img,
		  bool content);
/* Makes them anew, split by @source, which has one for each direct leak.  Return: 0 or -ENOMEM. */
int clusters_split(struct clusters *c, const struct graph *g, struct leaks *l,
		   const struct leak_source *source);
void clusters_free(struct clusters *c);

/* Names of the frames of a stack. */
struct stack_names {
	/* Return: does @matches(@pattern, NAME) hold for a function or file of @stack? */
	bool (*any)(void *ctx, uint32_t stack, bool (*matches)(const char *, const char *),
		    const char *pattern);
	void *ctx;
};
/* Marks clusters whose type, owner or stack (@names; NULL: not known) matches a line of a
 * suppression file (LeakSanitizer's: "leak:pattern", '*' for anything, '^' and '$' anchor, '#'
 * comments).  Return: 0 or -errno with @err. */
int clusters_suppress(struct clusters *c, const char *file, const struct stack_names *names,
		      struct mp_err *err);
/* Takes off what a former report (its JSON) knew, first from those without a stack: what a
 * recording has is younger.  Return: 0 or -errno with @err. */
int clusters_baseline(struct clusters *c, const char *file, struct mp_err *err);

#endif
