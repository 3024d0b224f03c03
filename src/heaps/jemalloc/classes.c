/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The size classes of jemalloc 5.1, whose tables are constants (size_classes.sh). */
#include "heaps/jemalloc/jemalloc.h"

#define SMALLEST  8
#define QUANTUM	  16
#define PER_GROUP 4 /* classes between two powers of two */

/* 8, then multiples of the quantum, then four in each doubling. */
static uint64_t next_class(uint64_t size)
{
	uint64_t step = (1ull << (63 - __builtin_clzll(size))) / PER_GROUP;

	if (size < QUANTUM)
		return QUANTUM;
	return size + (step < QUANTUM ? QUANTUM : step);
}

/* As few pages as make regions of @size without a rest. */
static uint64_t slab_size(const struct je *je, uint64_t size)
{
	uint64_t slab = je_page(je);

	while (slab % size)
		slab += je_page(je);
	return slab;
}

void je_make_tables(struct je *je)
{
	je->class_size[0] = SMALLEST;
	for (unsigned i = 1; i < JE_CLASSES; i++)
		je->class_size[i] = next_class(je->class_size[i - 1]);
	for (unsigned i = 0; i < je->layout->bins; i++) {
		uint64_t slab = slab_size(je, je->class_size[i]);

		je->bin[i] = (struct je_bin){
		    .reg_size = je->class_size[i],
		    .slab_size = slab,
		    .nregs = (uint32_t)(slab / je->class_size[i]),
		    .n_shards = 1,
		    .bits = slab / je->class_size[i],
		};
	}
}
