/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof leaks says to a person. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/leaks_cmd.h"

#define MAX_LINES 30

static const char *base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

void leaks_print_plan(const struct target *t, const struct snapshot_plan *plan)
{
	printf("process %d (%s), %u threads: %s anonymous memory in small pages, %s in huge ones\n",
	       t->pid, t->status.name, t->status.threads, human(plan->small), human(plan->huge));
	printf("pause: about %.1f ms predicted (%s)\n", (double)plan->pause_ns / 1e6,
	       plan->in_place ? "it stays stopped until its memory has been read"
	       : plan->gentle ? "of one thread; the others run on, though a page fault may wait"
			      : "it is copied, and runs on while the copy is read");
}

void leaks_print_heaps(const struct census *c)
{
	vec_for_each (&c->heaps, h) {
		printf("heap: %s%s%s, %s: %s live, %s free, %s in the caches of threads\n",
		       h->allocator, h->version[0] ? " " : "", h->version,
		       h->exact ? "exact" : "approximate", human(h->live_bytes),
		       human(h->free_bytes), human(h->cached_bytes));
		if (!h->exact)
			printf("      approximate because %s\n", h->doubt);
		vec_for_each (&h->damaged, d)
			printf("      DAMAGED at %#" PRIx64 ": %s\n", d->addr, d->what);
	}
	if (c->unknown[0])
		printf("      %s: what it holds is taken for reachable\n", c->unknown);
}

static void print_cluster(const struct cluster *c)
{
	uint64_t fresh = c->count > c->known_count ? c->count - c->known_count : 0;

	printf("%11s %9s %10s  %s", human(c->bytes + c->indirect_bytes), thousands(c->count),
	       human(c->size), c->type);
	if (c->owner)
		printf("  [%s]", base(c->owner));
	if (c->preview[0])
		printf("  \"%s\"", c->preview);
	printf("\n%33s", "");
	if (c->indirect_count)
		printf("holds %s more blocks; ", thousands(c->indirect_count));
	if (c->cycles)
		printf("%s point to themselves in a ring; ", thousands(c->cycles));
	if (c->known_count)
		printf("%s of them since the baseline; ", thousands(fresh));
	printf("%s%#" PRIx64 "\n", c->count > 1 ? "such as " : "at ", c->sample[0]);
}

static void print_hints(const struct analysis *a)
{
	const struct cluster *c = a->clusters.list.at;

	printf("\nwho points to a block:    memprof leaks -p %d --why %#" PRIx64 "\n"
	       "where they are allocated: memprof attach -p %d -o rec.memprof --for 60s\n"
	       "                          memprof report rec.memprof --leaks\n",
	       a->pid, c->sample[0], a->pid);
}

void leaks_print_report(const struct analysis *a, const struct leaks_sum *sum)
{
	uint64_t shown = 0, left = 0, left_bytes = 0;

	if (a->plan.in_place)
		printf("pause: %.1f ms measured\n", (double)a->pause_ns / 1e6);
	else if (a->pause_ns)
		printf("pause: %.1f ms measured; the copy was gone after %.2f s\n",
		       (double)a->longest_pause_ns / 1e6, (double)a->copy_ns / 1e9);
	if (a->target_gone)
		printf("the process ended meanwhile; this is what its copy held\n");
	leaks_print_heaps(&a->census);
	if (a->graph.unreadable_bytes)
		printf("%s could not be read: pointers in there are not seen\n",
		       human(a->graph.unreadable_bytes));
	if (a->cover.unfrozen_bytes)
		printf("%s are not part of a copy (MADV_DONTFORK) and were read while the process "
		       "ran\n",
		       human(a->cover.unfrozen_bytes));
	if (sum->suppressed)
		printf("%s leaked blocks are suppressed\n", thousands(sum->suppressed));
	if (!sum->count && !sum->known) {
		printf("\nno leaks: all of the %s live blocks (%s) can be reached\n",
		       thousands(a->live_count), human(a->live_bytes));
		return;
	}
	if (!sum->count)
		printf("\nno new leaks: %s blocks were in the baseline\n", thousands(sum->known));
	else
		printf("\nLEAKED: %s blocks, %s: nothing in the process points to them any more\n",
		       thousands(sum->count), human(sum->bytes));
	printf("\n%11s %9s %10s  %s\n", "bytes held", "blocks", "size", "what");
	vec_for_each (&a->clusters.list, c) {
		if (c->suppressed)
			continue;
		if (shown++ < MAX_LINES) {
			print_cluster(c);
			continue;
		}
		left += c->count;
		left_bytes += c->bytes + c->indirect_bytes;
	}
	if (left)
		printf("%11s %9s             in smaller groups (--json has all)\n",
		       human(left_bytes), thousands(left));
	if (sum->count && a->pid)
		print_hints(a);
}

static void print_block(const char *lead, const struct why_block *b)
{
	printf("%s%#" PRIx64 "  %s  %s\n", lead, b->addr, human(b->size), b->type);
}

void leaks_print_why(const struct why *w)
{
	if (!w->block.size) {
		printf("%#" PRIx64 " is in no live block\n", w->asked);
		return;
	}
	print_block("block ", &w->block);
	if (w->reached) {
		printf("is kept by: %s\n", w->root_name);
		vec_for_each (&w->path, b)
			print_block("  -> ", b);
	} else {
		printf("is leaked: no register, stack, global or reachable block leads to it\n");
	}
	printf("without it %s blocks (%s) would be unreachable, itself included\n",
	       thousands(w->retained_count), human(w->retained_bytes));
	printf("%s blocks point to it%s\n", thousands(w->pointers), w->pointers ? ":" : "");
	for (uint64_t i = 0; i < w->pointers && i < WHY_POINTERS; i++)
		print_block("  ", &w->pointer[i]);
	if (w->pointers > WHY_POINTERS)
		printf("  and %s more\n", thousands(w->pointers - WHY_POINTERS));
}
