/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaks of the same type and size together: what a report shows as one line. */
#ifndef LEAKS_CLUSTERS_H
#define LEAKS_CLUSTERS_H

#include "leaks/graph.h"
#include "leaks/types.h"

#define CLUSTER_SAMPLES 3
#define PREVIEW_BYTES	32

struct cluster {
	char *type;    /* "app::Node", or the shape: "text", "pointers", ... */
	char *owner;   /* file that the block has to do with, or NULL */
	uint64_t size; /* usable bytes of each block */
	uint64_t count, bytes;
	uint64_t indirect_count, indirect_bytes; /* what only these blocks keep */
	uint64_t cycles;			 /* how many of them keep themselves */
	uint64_t known_count; /* of the baseline; the report is about the others */
	uint64_t sample[CLUSTER_SAMPLES];
	uint32_t samples;
	char preview[PREVIEW_BYTES + 1]; /* of text, unless told not to */
	bool suppressed;
};
struct clusters {
	VEC(struct cluster) list; /* largest first */
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
/* Drops from @l what was not there before, or was another then. */
void sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		       const struct sightings *now);
void sightings_free(struct sightings *s);

/* @content: may bytes of the program be shown?  Return: 0 or -ENOMEM. */
int clusters_make(struct clusters *c, const struct graph *g, const struct leaks *l,
		  struct image *img, bool content);
void clusters_free(struct clusters *c);

/* Marks clusters whose type or owner matches a line of a suppression file (LeakSanitizer's:
 * "leak:pattern", '*' for anything, '^' and '$' anchor, '#' comments).
 * Return: 0 or -errno with @err. */
int clusters_suppress(struct clusters *c, const char *file, struct mp_err *err);
/* Takes off what a former report (its JSON) knew.  Return: 0 or -errno with @err. */
int clusters_baseline(struct clusters *c, const char *file, struct mp_err *err);

#endif
