/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the report of memprof leaks as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/heap/leaks_cmd.h"
#include "cmd/options/program.h"
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "lib/printable.h"

#define MAX_LINES     30
#define WRAP	      7 /* blanks before the rest of a line */
#define HINT	      26
#define TYPE_COLUMN   34 /* where the type begins */
#define MAX_FRAMES    8	 /* of a stack */
#define WAIT_SHOWN_NS 100000
#define LARGE_HEAP    (16u << 20) /* bytes: worth a look though nothing leaks */

static const char *how(enum snapshot_mode mode)
{
	switch (mode) {
	case SNAPSHOT_IN_PLACE:
		return "it stays stopped until its memory has been read";
	case SNAPSHOT_GENTLE:
		return "one thread at a time; the others keep running, though their page faults "
		       "can wait";
	case SNAPSHOT_PRE_COPY:
		return "it is read while it runs, and stopped only to read what it wrote meanwhile";
	default:
		return "it keeps running while the copy is read";
	}
}

void leaks_print_plan(const struct target *t, const struct snapshot_plan *plan)
{
	term_line(stdout, 0, WRAP,
		  "process %d (%s), %s, %s: %s anonymous memory in small pages, %s in huge ones",
		  t->pid, printable(t->status.name), counted(t->status.threads, "thread"),
		  counted(plan->mappings, "mapping"), human(plan->small), human(plan->huge));
	term_line(stdout, 0, WRAP, "pause: about %.1f ms predicted (%s: %s)",
		  (double)plan->pause_ns / 1e6, snapshot_mode_name(plan->mode), how(plan->mode));
	term_line(stdout, 0, WRAP, "       at most %.1f ms with the present load: %s for %s",
		  (double)plan->pause_most_ns / 1e6, counted(plan->load.running, "thread"),
		  counted(plan->load.processors, "processor"));
	if (plan->memory)
		term_line(stdout, 0, WRAP,
			  "memory: memprof needs about %s more to hold what it reads",
			  human(plan->memory));
}

void leaks_print_overrun(const struct analysis *a, const struct target *t)
{
	char advice[160];

	snapshot_advice(&a->plan, t, a->longest_pause_ns, advice, sizeof(advice));
	printf("pause: %.1f ms, longer than the %" PRIu64 " ms of --max-pause; %s\n",
	       (double)a->longest_pause_ns / 1e6, a->plan.max_pause_ns / 1000000, advice);
}

void leaks_print_core(const struct image *core, const char *name)
{
	printf("core of process %d (%s), %s\n", core->threads.at[0].tid, printable(name),
	       counted(core->threads.n, "thread"));
}

void leaks_print_heaps(const struct census *c)
{
	vec_for_each (&c->heaps, h) {
		term_line(stdout, 0, WRAP,
			  "heap: %s%s%s, %s: %s live, %s free, %s in the caches of threads",
			  h->allocator, h->version[0] ? " " : "", printable(h->version),
			  h->exact ? "exact" : "approximate", human(h->live_bytes),
			  human(h->free_bytes), human(h->cached_bytes));
		if (!h->exact)
			printf("      approximate because %s\n", printable(h->doubt));
		vec_for_each (&h->damaged, d)
			printf("      DAMAGED at %#" PRIx64 ": %s\n", d->addr, printable(d->what));
	}
	if (c->unknown[0])
		printf("      %s: its memory counts as reachable\n", printable(c->unknown));
}

static const char *ago(uint64_t ns, char buf[24])
{
	double s = (double)ns / 1e9;

	if (s < 120)
		snprintf(buf, 24, "%.1f s", s);
	else if (s < 2 * 3600)
		snprintf(buf, 24, "%.0f min", s / 60);
	else
		snprintf(buf, 24, "%.1f h", s / 3600);
	return buf;
}

static void print_thread(const struct leak_join *j, uint32_t tid)
{
	const char *name = NULL;

	vec_for_each (&j->r.m.tasks.threads, t)
		name = t->tid == tid ? t->name : name;
	printf(name ? "thread %u (%s)" : "thread %u", tid, name ? printable(name) : "");
}

/* @youngest_ns, @several: of the cluster. */
static void print_source(const struct leak_source *s, uint64_t youngest_ns, bool several,
			 struct leak_join *j, const char *indent)
{
	char oldest[24], youngest[24], deeper[64];

	if (!s->known) {
		printf("%snot in the recording\n", indent);
		return;
	}
	ago(s->age_ns, oldest);
	ago(youngest_ns, youngest);
	printf("%sallocated %s%s", indent, s->older ? "more than " : "", oldest);
	if (strcmp(oldest, youngest) != 0)
		printf(" to %s", youngest);
	printf(" before this report, by ");
	if (several)
		printf("several threads");
	else
		print_thread(j, s->tid);
	printf(", at\n");
	snprintf(deeper, sizeof(deeper), "%s  ", indent);
	text_stack(&j->r.m, s->stack, MAX_FRAMES, deeper, stdout);
}

static void print_cluster(const struct cluster *c, struct leak_join *j)
{
	uint64_t fresh = c->count - c->known_count;
	char owner[TEXT_WHERE] = "";

	printf("%s%11s%s %9s %10s  ", term_on(stdout, TERM_AMOUNT),
	       human(c->bytes + c->indirect_bytes), term_off(stdout), thousands(c->count),
	       human(c->size));
	if (c->owner)
		snprintf(owner, sizeof(owner), "  [%s]", printable(program_library(c->owner)));
	text_name(printable(c->type), owner, true, TYPE_COLUMN, stdout);
	if (c->preview[0])
		printf("  \"%s\"", c->preview);
	printf("\n%33s", "");
	if (c->indirect_count)
		printf("holds %s; ", counted(c->indirect_count, "more block"));
	if (c->cycles)
		printf("%s point%s in a ring; ", thousands(c->cycles),
		       c->cycles == 1 ? "s to itself" : " to themselves");
	if (c->known_count)
		printf("%s of them since the baseline; ", thousands(fresh));
	printf("%s%#" PRIx64 "\n", c->count > 1 ? "such as " : "at ", c->sample[0]);
	if (j->r.read)
		print_source(&c->source, c->youngest_ns, c->several_threads, j,
			     "                                 ");
}

static void print_hints(const struct analysis *a, const struct leak_join *j)
{
	const struct cluster *c = a->clusters.list.at;

	printf("\nwhat points to a block:   memprof leaks -p %d --why %#" PRIx64 "\n", a->pid,
	       c->sample[0]);
	if (!j->r.read)
		term_line(stdout, 0, HINT,
			  "where they are allocated: memprof attach -p %d --background; memprof "
			  "leaks then shows it for later leaks (now: %s)",
			  a->pid, j->r.why_not);
}

/* Prints why blocks can be unknown to the recording. */
static void print_unknown(const struct leak_join *j)
{
	const struct mp_losses *l = &j->r.m.facts.losses;
	char text[24];

	printf("        not in the recording: %s (%s), allocated before it began (%s before this "
	       "report)",
	       counted(j->unknown.count, "leaked block"), human(j->unknown.bytes),
	       ago(j->r.began_ns, text));
	if (j->r.ended_ns)
		printf(", or after it ended");
	if (j->r.sampled)
		printf(", or not sampled");
	if (l->left_out_allocs)
		printf(", or left out (other threads, or paused)");
	if (l->lost_alloc)
		printf(", or lost (it lost %s)", counted(l->lost_alloc, "allocation"));
	printf("\n");
}

static void print_join(const struct leak_join *j)
{
	char text[24];

	printf("stacks: from %s%s", printable(j->r.path), j->r.live ? ", still recording" : "");
	if (j->known.count || j->unknown.count)
		printf("; it has %s (%s)", counted(j->known.count, "leaked block"),
		       human(j->known.bytes));
	printf("\n");
	if (j->unknown.count)
		print_unknown(j);
	if (j->r.ended_ns && j->known.count)
		printf("        it ended %s before this report: a block that was freed and "
		       "allocated again since then\n"
		       "        with the same size would be taken for the earlier block\n",
		       ago(j->r.ended_ns, text));
	if (j->uncertain)
		printf("        events were lost: at most %s can have the stack of an earlier "
		       "block at the same address\n",
		       counted(j->uncertain, "block"));
	if (j->freed.count)
		printf("        freed while the copy was analysed: %s (%s), no leaks: the program "
		       "still had the addresses\n",
		       counted(j->freed.count, "block"), human(j->freed.bytes));
}

void leaks_print_pause(uint64_t ns, uint64_t wait_ns)
{
	printf("pause: %.1f ms measured", (double)ns / 1e6);
	if (wait_ns > WAIT_SHOWN_NS)
		printf(", up to %.1f ms of it waiting for a processor", (double)wait_ns / 1e6);
}

static void print_unasked(const struct analysis *a)
{
	if (a->pid)
		printf("signal stacks: %s could not be asked (sigaltstack)",
		       counted(a->cover.unasked, "thread"));
	else
		printf("signal stacks: a core file does not have their addresses (sigaltstack)");
	printf("; a leaked block of 2 KiB or more can be one\n");
}

void leaks_print_report(const struct analysis *a, const struct leaks_sum *sum, struct leak_join *j)
{
	uint64_t shown = 0, left = 0, left_bytes = 0;

	if (a->plan.automatic && a->plan.mode == SNAPSHOT_COPY)
		printf("pre-copy would have needed too long a pause, so a copy was made\n");
	if (a->pause_ns) {
		leaks_print_pause(a->longest_pause_ns, a->longest_wait_ns);
		if (a->plan.mode != SNAPSHOT_IN_PLACE && a->plan.mode != SNAPSHOT_PRE_COPY)
			printf("; the copy existed for %.2f s", (double)a->copy_ns / 1e9);
		putchar('\n');
	}
	if (a->target_gone)
		printf("the process ended meanwhile; this is the report of its copy\n");
	leaks_print_heaps(&a->census);
	if (a->graph.unreadable_bytes)
		printf("%s could not be read: pointers in it are unknown\n",
		       human(a->graph.unreadable_bytes));
	if (a->cover.unfrozen_bytes)
		printf("%s are not part of a copy (MADV_DONTFORK) and were read while the process "
		       "ran\n",
		       human(a->cover.unfrozen_bytes));
	if (j->r.read)
		print_join(j);
	if (sum->suppressed)
		printf("suppressed: %s\n", counted(sum->suppressed, "leaked block"));
	if (a->leaks.garbage_count)
		printf("garbage: %s (%s) that Python's collector will free: no leak\n",
		       counted(a->leaks.garbage_count, "block"), human(a->leaks.garbage_bytes));
	if (!sum->count && !sum->known) {
		printf("\n%sno leaks%s: all of the %s%s (%s) can be reached\n",
		       term_on(stdout, TERM_GOOD), term_off(stdout),
		       a->leaks.garbage_count ? "other " : "",
		       counted(a->live_count - a->leaks.garbage_count, "live block"),
		       human(a->live_bytes - a->leaks.garbage_bytes));
		if (a->pid && a->live_bytes >= LARGE_HEAP)
			term_line(stdout, 0, WRAP,
				  "what keeps them: memprof heap -p %d --retained; what grows: "
				  "memprof heap -p %d --growth 60s",
				  a->pid, a->pid);
		return;
	}
	if (a->cover.unasked)
		print_unasked(a);
	if (!sum->count)
		printf("\nno new leaks: %s, all in the baseline\n", counted(sum->known, "block"));
	else
		printf("\n%sLEAKED%s: %s, %s: nothing in the process points to %s any more\n",
		       term_on(stdout, TERM_BAD), term_off(stdout), counted(sum->count, "block"),
		       human(sum->bytes), sum->count == 1 ? "it" : "them");
	printf("\n%s%11s %9s %10s  %s%s\n", term_on(stdout, TERM_FAINT), "bytes held", "blocks",
	       "size", "what", term_off(stdout));
	vec_for_each (&a->clusters.list, c) {
		if (c->suppressed)
			continue;
		if (shown++ < MAX_LINES) {
			print_cluster(c, j);
			continue;
		}
		left += c->count;
		left_bytes += c->bytes + c->indirect_bytes;
	}
	if (left)
		printf("%11s %9s             in smaller groups (--json has all)\n",
		       human(left_bytes), thousands(left));
	if (sum->count && a->pid)
		print_hints(a, j);
}

static void print_block(const char *lead, const struct why_block *b)
{
	printf("%s%#" PRIx64 "  %s  %s\n", lead, b->addr, human(b->size), printable(b->type));
}

void leaks_print_why(const struct why *w, struct leak_join *j)
{
	if (!w->block.size) {
		printf("%#" PRIx64 " is in no live block\n", w->asked);
		return;
	}
	print_block("block ", &w->block);
	if (j->r.read)
		print_source(&w->source, w->source.age_ns, false, j, "  ");
	if (w->reached) {
		printf("is kept by: %s\n", printable(w->root_name));
		vec_for_each (&w->path, b)
			print_block("  -> ", b);
	} else {
		printf("%s: no register, stack, global or reachable block leads to it\n",
		       w->python ? "is leaked, or in a ring that Python's collector will free"
				 : "is leaked");
	}
	printf("without it %s (%s) would be unreachable, itself included\n",
	       counted(w->retained_count, "block"), human(w->retained_bytes));
	printf("%s block%s to it%s\n", thousands(w->pointers),
	       w->pointers == 1 ? " points" : "s point", w->pointers ? ":" : "");
	for (uint64_t i = 0; i < w->pointers && i < WHY_POINTERS; i++)
		print_block("  ", &w->pointer[i]);
	if (w->pointers > WHY_POINTERS)
		printf("  and %s more\n", thousands(w->pointers - WHY_POINTERS));
}
