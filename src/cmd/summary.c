/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/servers.h"
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "export/text/text_brief.h"
#include "inject/hooks/names.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "record/pieces/carry.h"

#define TOP_SITES    5 /* with --verbose */
#define TOP_FRAMES   6
#define BRIEF_SITES  3
#define BRIEF_FRAMES 3
/* A program can have had a heap of its own before the recording if the memory in its mappings
 * exceeds these bytes and this multiple of what malloc() returned. */
#define OLD_HEAP  (16 << 20)
#define OLD_TIMES 16

/* Adds the frames of one address.  @unnamed: set if the function is not known.  Return: 0 or
 * -ENOMEM. */
static int add_frames(const struct summary *s, uint64_t pc, struct shown_list *list, bool *unnamed)
{
	const struct mp_module *m = s->symbols ? symbols_module(s->symbols, pc) : NULL;
	const char *file = m && m->path ? library_name(m->path, s->executable, s->called) : NULL;
	uint64_t address = ss_pc_instruction(pc), offset = address - (m ? m->bias : 0);
	struct mp_symbol sym[64];
	uint32_t n = s->symbols ? symbols_find(s->symbols, pc, sym, 64) : 0;
	char *name;
	int ret = 0;

	if (!n) {
		if (asprintf(&name, "%s+0x%llx", file ? file : "?", (unsigned long long)offset) < 0)
			return -ENOMEM;
		if (vec_push(&list->names, name)) {
			free(name);
			return -ENOMEM;
		}
		sym[0] =
		    (struct mp_symbol){.function = pc == CARRY_CLEARED_PC ? CARRY_CLEARED : name};
		n = 1;
		*unnamed |= m && m->path && m->path[0] == '/';
	} else if (!file) {
		file = LIBRARY_JIT;
	} else if (hook_name_at(&s->session->plan, pc)) {
		sym[n - 1].function = hook_name_at(&s->session->plan, pc);
	}
	for (uint32_t k = 0; k < n && !ret; k++) {
		struct frame f = {.function = sym[k].function ? sym[k].function : "?",
				  .raw_function = sym[k].raw_function,
				  .source = sym[k].source,
				  .line = sym[k].line,
				  .library = file,
				  .address = address,
				  .offset = offset,
				  .is_inline = sym[k].is_inline};

		ret = shown_list_add(list, &f, false, false);
	}
	return ret;
}

static void print_site(const struct summary *s, const struct recorder_top *top, const char *unit,
		       bool *unnamed)
{
	uint32_t frames = s->verbose ? TOP_FRAMES : BRIEF_FRAMES;
	uint64_t pc[SS_MAX_FRAMES];
	struct shown_list list = {0};
	struct shown_stack stack;

	recorder_pcs(s->recorder, top, pc);
	printf("  %s%10s%s in %s\n", term_on(stdout, TERM_AMOUNT), human((uint64_t)top->bytes),
	       term_off(stdout), counted((uint64_t)top->count, unit));
	for (uint32_t i = 0; i < top->n; i++) {
		if (add_frames(s, pc[i], &list, unnamed))
			break;
	}
	stack = shown_list_fold(&list);
	text_frames(&stack, frames, "      ", stdout);
	shown_list_free(&list);
}

static void print_incomplete(const struct mp_losses *l)
{
	if (l->stacks_total && l->stacks_complete < l->stacks_total)
		printf("stacks: %s of %s incomplete (marked)\n",
		       thousands(l->stacks_total - l->stacks_complete), thousands(l->stacks_total));
}

static void print_losses(const struct mp_losses *l, bool page_faults, bool lossless)
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
		printf("      live blocks are uncertain from the first loss on%s\n",
		       lossless ? "" : "; with --lossless the process waits instead");
	}
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

/* What thinning (agent/thin.h) did. */
static void print_thinned(const struct summary *s, const struct recorder_progress *p)
{
	const struct mp_losses *l = s->losses;

	if (l->thinned && s->session->layout.overhead_ppm)
		printf("sampled: about %s of %s were not recorded, from %.2f s to %.2f s; others "
		       "represent up to %u each\n",
		       counted(l->thinned, "allocation"), human(l->thinned_bytes),
		       (double)p->thinning.first_ns / 1e9, (double)p->thinning.last_ns / 1e9,
		       1u << p->thinning.most);
	else if (l->thinned)
		printf("estimated: %s of %s were thinned out, from "
		       "%.2f s to %.2f s; others represent up to %u each\n",
		       counted(l->thinned, "allocation"), human(l->thinned_bytes),
		       (double)p->thinning.first_ns / 1e9, (double)p->thinning.last_ns / 1e9,
		       1u << p->thinning.most);
}

static uint32_t part_of(uint64_t ns, uint64_t all)
{
	double ppm = (double)ns / (double)all * 1e6;

	return ppm < (double)UINT32_MAX ? (uint32_t)ppm : UINT32_MAX;
}

/* What a recording with a budget has cost (record/budget/cost.h). */
static void print_cost(const struct summary *s, const struct recorder_cost *c)
{
	uint64_t all = c->target_ns;

	printf(
	    "cost: %s of the process's CPU time (%s in the process, %s in memprof); at most %s was "
	    "asked for\n",
	    human_part(part_of(c->in_target_ns + c->own_ns, all)),
	    human_part(part_of(c->in_target_ns, all)), human_part(part_of(c->own_ns, all)),
	    human_part(s->session->layout.overhead_ppm));
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
	uint32_t n = recorder_top(s->recorder, by, top, s->verbose ? TOP_SITES : BRIEF_SITES);
	bool unnamed = false;

	if (n)
		puts(title);
	for (uint32_t i = 0; i < n; i++)
		print_site(s, &top[i], unit, &unnamed);
	if (unnamed)
		puts("  functions without names: memprof report says what gives them");
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
	if (!s->session->observes && s->verbose)
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

static void print_recording(const struct summary *s, const struct recorder_progress *p)
{
	if (p->pieces_deleted)
		printf("recording: %u pieces, %u of them deleted (--keep); from %s to %s remain; "
		       "memprof merge joins them\n",
		       p->pieces + 1, p->pieces_deleted,
		       printable(recorder_oldest_piece(s->recorder)), printable(s->path));
	else if (p->pieces)
		printf("recording: %u pieces, the last one is %s (%s in all); memprof merge joins "
		       "them\n",
		       p->pieces + 1, printable(s->path), human(p->file_bytes));
	else
		printf("recording: %s%s (%s)\n", s->sent ? "sent to " : "", printable(s->path),
		       human(p->file_bytes));
	if (!s->verbose && !s->sent)
		printf("next: memprof report %s\n", printable(s->path));
}

static void print_brief(const struct summary *s, const struct recorder_progress *p)
{
	term_line(stdout, 0, 6, "live: %s in %s; peak %s; %s allocated in %s%s",
		  human(p->live_bytes), counted(p->live_blocks, "block"), human(p->peak_live_bytes),
		  human(p->allocated_bytes), counted(p->allocs, "allocation"),
		  s->session->layout.sample_interval ? " sampled (estimates)" : "");
	if (s->losses->thinned && s->session->layout.overhead_ppm)
		printf("sampled: about %s of %s were not recorded: estimates (--verbose)\n",
		       counted(s->losses->thinned, "allocation"), human(s->losses->thinned_bytes));
	else if (s->losses->thinned)
		printf("estimated: %s of %s were thinned out (--verbose)\n",
		       counted(s->losses->thinned, "allocation"), human(s->losses->thinned_bytes));
	fputs("lost: ", stdout);
	text_losses(s->losses, p->events, mp_losses_frees(s->losses) > 0, stdout);
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
	else if (s->verbose)
		print_allocations(s, &p);
	else
		print_brief(s, &p);
	if (s->verbose)
		print_thinned(s, &p);
	if (p.cost.target_ns)
		print_cost(s, &p.cost);
	if (s->page_faults || s->verbose) {
		print_left_out(s);
		print_losses(s->losses, s->page_faults, s->session->layout.lossless);
		print_incomplete(s->losses);
	}
	if (s->page_faults) {
		print_sites(s, RECORDER_LIVE, "faulting in most:", "fault");
	} else {
		print_sites(s, RECORDER_LIVE, "growing most:", "block");
		print_own_heap(s, &p);
		print_traces(s, pid);
	}
	servers_report(s->servers, stdout);
	print_recording(s, &p);
}
