/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Groups leaks of the same type and size, and of the same allocation stack if that is known.  A
 * report shows each cluster as one line. */
#ifndef LEAKS_CLUSTERS_H
#define LEAKS_CLUSTERS_H

#include "leaks/graph.h"
#include "leaks/leak_source.h"
#include "leaks/mark.h"
#include "leaks/types/types.h"

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

/* Groups the leaks of @l.  @content: bytes of the program's memory may be shown.  Return: 0 or
 * -ENOMEM. */
int clusters_make(struct clusters *c, const struct graph *g, struct leaks *l, struct image *img,
		  bool content);
/* Makes the clusters again, split by @source, an array with an entry for each direct leak.  Return:
 * 0 or -ENOMEM. */
int clusters_split(struct clusters *c, const struct graph *g, struct leaks *l,
		   const struct leak_source *source);
void clusters_free(struct clusters *c);

#endif
