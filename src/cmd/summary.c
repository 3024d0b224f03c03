/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/summary.h"

#include <stdio.h>
#include <string.h>
#include "inject/hooks/names.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "record/carry.h"

#define TOP_SITES  5
#define TOP_FRAMES 6
/* A program can have had a heap of its own before the recording if the memory in its mappings
 * exceeds these bytes and this multiple of what malloc() returned. */
#define OLD_HEAP  (16 << 20)
#define OLD_TIMES 16

/* The address of the call instruction, as in reports, not of the one after it. */
static uint64_t call_address(uint64_t pc)
{
	return pc & SS_PC_EXACT ? pc & ~SS_PC_EXACT : pc - 1;
}

static void print_site(const struct summary *s, const struct recorder_top *top, const char *unit)
{
	uint64_t pc[SS_MAX_FRAMES];
	uint32_t shown = 0;

	recorder_pcs(s->recorder, top, pc);
	printf("  %10s in %s\n", human((uint64_t)top->bytes), counted((uint64_t)top->count, unit));
	for (uint32_t i = 0; i < top->n && shown < TOP_FRAMES; i++) {
		struct mp_symbol sym[64];
		uint32_t n = s->symbols ? symbols_find(s->symbols, pc[i], sym, 64) : 0;
		const struct mp_module *m = s->symbols ? symbols_module(s->symbols, pc[i]) : NULL;
		const char *file = m && m->path && strrchr(m->path, '/')
				       ? printable(strrchr(m->path, '/') + 1)
				       : "?";

		if (pc[i] == CARRY_CLEARED_PC)
			printf("      %s\n", CARRY_CLEARED);
		else if (!n)
			printf("      %s+0x%llx\n", file,
			       (unsigned long long)(call_address(pc[i]) - (m ? m->bias : 0)));
		if (n && hook_name_at(&s->session->plan, pc[i]))
			sym[n - 1].function = hook_name_at(&s->session->plan, pc[i]);
		for (uint32_t k = 0; k < n && shown < TOP_FRAMES; k++, shown++) {
			printf("      %s", sym[k].function ? printable(sym[k].function) : "?");
			if (sym[k].source)
				printf("  %s:%u", printable(sym[k].source), sym[k].line);
			else
				printf("  [%s]", file);
			putchar('\n');
		}
		shown += !n;
	}
}

static void print_losses(const struct mp_losses *l, bool page_faults)
{
	uint64_t events =
	    l->lost_alloc + l->lost_free + l->lost_realloc + l->lost_map + l->lost_other;

	if (page_faults && mp_losses_events(l))
		printf("lost: %s; larger rings (--ring-size) or smaller stacks (--stack-size) "
		       "help\n",
		       counted(mp_losses_events(l), "page fault"));
	else if (!events && !l->lost_no_slot && !l->queue_events && !l->stale && !l->mismatches) {
		printf("lost: nothing\n");
	} else {
		printf("lost: %s (%s), %s, %s, %s, %s other; %s of threads without a slot, %s by "
		       "the queue, %s after the recorder missed its deadline\n",
		       counted(l->lost_alloc, "allocation"), human(l->lost_bytes),
		       counted(l->lost_free, "free"), counted(l->lost_realloc, "realloc"),
		       counted(l->lost_map, "map"), thousands(l->lost_other),
		       thousands(l->lost_no_slot), thousands(l->queue_events), thousands(l->stale));
		printf("      live blocks are uncertain from the first loss on; with --lossless "
		       "the process waits instead\n");
	}
	if (l->stacks_total && l->stacks_complete < l->stacks_total)
		printf("stacks: %s of %s incomplete (marked)\n",
		       thousands(l->stacks_total - l->stacks_complete), thousands(l->stacks_total));
}

static void print_allocations(const struct summary *s, const struct recorder_progress *p)
{
	uint64_t interval = s->session->layout.sample_interval;

	if (interval)
		printf("sampled: %s, on average one per %s requested; bytes and blocks are "
		       "estimates\n",
		       counted(p->allocs, "allocation"), human(interval));
	else
		printf("events: %s (%s of %s, %s; %s of blocks older than the recording%s)\n",
		       thousands(p->events), counted(p->allocs, "allocation"),
		       human(p->allocated_bytes), counted(p->frees, "free"),
		       counted(p->foreign_frees, "free"),
		       mp_losses_events(s->losses) ? " or lost" : "");
	printf("live since the start of the recording: %s in %s; peak %s\n", human(p->live_bytes),
	       counted(p->live_blocks, "block"), human(p->peak_live_bytes));
}

static void print_left_out(const struct summary *s)
{
	const struct mp_losses *l = s->losses;

	if (s->page_faults && l->left_out_allocs)
		printf("left out: %s (of other threads, or while paused)\n",
		       counted(l->left_out_allocs, "page fault"));
	else if (l->left_out_allocs || l->left_out_frees)
		printf("left out: %s (of other threads, or while paused); %s of blocks that are "
		       "not in the recording\n",
		       counted(l->left_out_allocs, "allocation"),
		       counted(l->left_out_frees, "free"));
}

static void print_sites(const struct summary *s, enum recorder_top_by by, const char *title,
			const char *unit)
{
	struct recorder_top top[TOP_SITES];
	uint32_t n = recorder_top(s->recorder, by, top, TOP_SITES);

	if (n)
		puts(title);
	for (uint32_t i = 0; i < n; i++)
		print_site(s, &top[i], unit);
}

/* A program with a heap of its own (PHP, Java, Go, node) hardly calls malloc(): few allocations do
 * not mean little memory. */
static void print_own_heap(const struct summary *s, const struct recorder_progress *p)
{
	if (summary_own_heap(s->session, p)) {
		printf("mapped by the program itself, not by malloc: %s in %s (%s by malloc): it "
		       "has a heap or buffers of its own\n",
		       human(p->mapped_bytes), counted(p->mappings, "mapping"),
		       human(p->allocated_bytes));
		print_sites(s, RECORDER_MAPPED, "mapping most:", "mapping");
		printf("  all of them: memprof report %s --tree --cost mapped\n",
		       printable(s->path));
	} else if (!s->session->layout.sample_interval && p->anonymous >= OLD_HEAP &&
		   p->anonymous > OLD_TIMES * (p->allocated_bytes + p->mapped_bytes)) {
		printf("%s is resident in mappings without a file, nearly all from before the "
		       "recording: malloc, static data, or a heap of the program's own; memprof "
		       "heap -p %d shows which\n",
		       human(p->anonymous), s->session->t->pid);
	}
}

/* Prints how long the process was stopped, and that it is restored. */
static void print_traces(const struct summary *s, pid_t pid)
{
	if (!s->session->observes)
		printf("pauses: attach %.2f + %.2f ms (agent, hooks), detach %.2f ms (it took %.2f "
		       "ms in all)\n",
		       (double)s->session->open_stop_ns / 1e6,
		       (double)s->session->patch_stop_ns / 1e6,
		       (double)s->session->close_stop_ns / 1e6, (double)s->session->close_ns / 1e6);
	if (s->finish->restored)
		printf("process %d is restored: text, mappings, descriptors and threads are as "
		       "before\n",
		       pid);
}

void summary_print(const struct summary *s)
{
	static const char *const reason[] = {
	    "",
	    "detached",
	    "the program ended",
	    "the process executed another program; see --follow-exec",
	    "time is up",
	    "an error",
	    "the recorder ended, the session waits for the next one",
	    ""};
	struct recorder_progress p = recorder_progress(s->recorder);
	pid_t pid = s->session->t->pid;

	printf("recorded %.1f s of process %d: %s\n", (double)p.duration_ns / 1e9, pid,
	       reason[s->finish->reason]);
	if (s->page_faults)
		printf("page faults: %s, pages of %s\n", thousands(p.allocs),
		       human(p.allocated_bytes));
	else
		print_allocations(s, &p);
	print_left_out(s);
	print_losses(s->losses, s->page_faults);
	if (s->page_faults) {
		print_sites(s, RECORDER_LIVE, "faulting in most:", "fault");
	} else {
		print_sites(s, RECORDER_LIVE, "growing most:", "block");
		print_own_heap(s, &p);
		print_traces(s, pid);
	}
	if (p.pieces)
		printf("recording: %u pieces, the last one is %s (%s in all); memprof merge joins "
		       "them\n",
		       p.pieces + 1, printable(s->path), human(p.file_bytes));
	else
		printf("recording: %s (%s)\n", printable(s->path), human(p.file_bytes));
}
