/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/text_head.h"

#include <time.h>
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"

/* @when: when the first one began. */
static void text_processes(const struct model *m, const char *when, FILE *out)
{
	fprintf(out, "processes   %zu, recorded from %s on, for %.1f s\n", m->tasks.processes.n,
		when, (double)m->facts.end_ns / 1e9);
	vec_for_each (&m->tasks.processes, p) {
		fprintf(out, "  %8u  %s", p->of.pid,
			printable(p->of.cmdline[0] ? p->of.cmdline : p->of.executable));
		if (!m->source.quick && m->info.what == MP_PAGE_FAULTS)
			fprintf(out, ": %s faulted in", human(p->allocated_bytes));
		else if (!m->source.quick)
			fprintf(out, ": %s allocated, %s live in %s", human(p->allocated_bytes),
				human(p->live_bytes), counted(p->live_blocks, "block"));
		fputc('\n', out);
	}
}

void text_piece(const struct model *m, FILE *out)
{
	if (m->info.piece)
		fprintf(out,
			"piece       from %.1f s of a recording on, with what was live; its calls "
			"before are in\n"
			"            pieces 0 to %u%s\n",
			(double)m->info.piece_ns / 1e9, m->info.piece - 1,
			m->info.keep ? ", of which old ones are deleted (--keep)" : "");
}

void text_head(struct model *m, FILE *out)
{
	static const char *const reason[] = {
	    "not yet, the recording continues",
	    "detached",
	    "the program ended",
	    "the process executed another program (exec)",
	    "time was up",
	    "an error",
	    "the recorder ended, the session stayed for the next one",
	    "the recording continues in another file"};
	time_t at = (time_t)(m->info.start_unix_ns / 1000000000u);
	char when[32] = "?";
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	text_bold(out, printable(m->info.cmdline[0] ? m->info.cmdline : m->info.executable));
	if (m->tasks.processes.n)
		text_processes(m, when, out);
	else
		fprintf(out, "process     %u, %s %s, for %.1f s\n", m->info.pid,
			m->info.mode ? "run from its start at" : "attached at", when,
			(double)m->facts.end_ns / 1e9);
	text_piece(m, out);
	if (m->facts.has_finish)
		fprintf(
		    out, "ended       %s%s\n",
		    reason[m->facts.finish.reason <= MP_END_PIECED ? m->facts.finish.reason : 0],
		    m->facts.finish.restored ? "; the process was restored" : "");
	if (m->source.truncated)
		fprintf(out, "note        %s\n", m->source.truncated);
	vec_for_each (&m->facts.marks, mark)
		fprintf(out, "mark        %.1f s  %s\n", (double)mark->time_ns / 1e9,
			printable(mark->name));
}

void text_resident(const struct model *m, FILE *out)
{
	const struct mp_sample *first = NULL, *last = NULL;
	uint64_t most = 0, session = 0;
	char a[24], b[24], c[24];

	vec_for_each (&m->facts.samples, s) {
		if (!s->rss)
			continue;
		first = first ? first : s;
		last = s;
		most = s->rss > most ? s->rss : most;
		session = s->session_rss > session ? s->session_rss : session;
	}
	if (first == last)
		return;
	fprintf(out, "resident    %s at %.1f s, %s at %.1f s, at most %s (sampled once a second)",
		human_bytes(first->rss, a), (double)first->time_ns / 1e9, human_bytes(last->rss, b),
		(double)last->time_ns / 1e9, human_bytes(most, c));
	if (session)
		fprintf(out, "; memprof's session in addition at most %s", human_bytes(session, a));
	fputc('\n', out);
}
