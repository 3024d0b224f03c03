/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/text.h"

#include <string.h>
#include "export/text/terminal.h"
#include "formats/session.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"

const char *text_cost(enum cost cost, uint64_t value, uint64_t count, char *buf)
{
	const char *noun = cost_text(cost);
	char a[32], b[32];

	if (cost_is_bytes(cost))
		snprintf(buf, TEXT_COST, "%s in %s %s%s", human_bytes(value, a),
			 human_number(count, b), cost_unit(cost), plural(count));
	else
		snprintf(buf, TEXT_COST, "%s %.*s", human_number(value, a),
			 (int)strlen(noun) - (value == 1), noun);
	return buf;
}

void text_bold(FILE *out, const char *text)
{
	fprintf(out, "%s%s%s\n", term_on(out, TERM_BOLD), text, term_off(out));
}

/* Does the frame's name already contain the library?  Without a known function, it is the library
 * and an offset. */
static bool names_library(const struct frame *f)
{
	size_t n = strlen(f->library);

	return !strncmp(f->function, f->library, n) && f->function[n] == '+';
}

const char *text_library(const struct frame *f, bool site, char buf[TEXT_WHERE])
{
	*buf = 0;
	if (!f->library || names_library(f))
		return buf;
	if (site && !f->source)
		snprintf(buf, TEXT_WHERE, "[%s+0x%llx]", printable(f->library),
			 (unsigned long long)f->offset);
	else
		snprintf(buf, TEXT_WHERE, "[%s]", printable(f->library));
	return buf;
}

/* A place in a source without its folders. */
static const char *without_folders(const char *where, char buf[TEXT_WHERE])
{
	const char *slash = strrchr(where, '/');

	if (!slash)
		return where;
	snprintf(buf, TEXT_WHERE, "%.*s%s", (int)strspn(where, " "), where, slash + 1);
	return buf;
}

void text_name(const char *function, const char *where, bool site, size_t column, FILE *out)
{
	size_t width = term_width(out), room = width > column ? width - column : 0;
	const char *on = site ? term_on(out, TERM_BOLD) : "";
	const char *faint = site || !*where ? "" : term_on(out, TERM_FAINT);
	char name[TERM_NAME], place[TEXT_WHERE];

	if (width && strlen(function) + strlen(where) > room)
		where = without_folders(where, place);
	if (width && strlen(function) + strlen(where) > room)
		function = term_fit(
		    function, strlen(where) < room / 2 ? room - strlen(where) : room / 2, name);
	fprintf(out, "%s%s%s%s%s%s", on, function, *on ? term_off(out) : "", faint, where,
		*faint ? term_off(out) : "");
}

static const char *where_text(const struct frame *f, bool site, char buf[TEXT_WHERE])
{
	char library[TEXT_WHERE];

	*buf = 0;
	if (f->source && f->line)
		snprintf(buf, TEXT_WHERE, "  %s:%u", printable(f->source), f->line);
	else if (*text_library(f, site, library))
		snprintf(buf, TEXT_WHERE, "  %.*s", TEXT_WHERE - 3, library);
	return buf;
}

/* Writes an entry.  The site's indent ends in ">", since it is the line to look at. */
static void write_frame(const struct shown_frame *f, bool site, const char *indent, FILE *out)
{
	int room = (int)strlen(indent) - 2;
	char where[TEXT_WHERE], runtimes[SHOWN_RUNTIMES];

	if (f->frames > 1)
		snprintf(where, sizeof(where), ", %u frames of %s", f->frames,
			 shown_runtimes(f->runtimes, runtimes));
	else
		where_text(&f->at, site, where);
	if (f->frames == 1 && f->at.is_inline)
		strncat(where, " (inlined)", sizeof(where) - strlen(where) - 1);
	if (site && room >= 0)
		fprintf(out, "%.*s> ", room, indent);
	else
		fputs(indent, out);
	text_name(printable(f->at.function), where, site, strlen(indent), out);
	putc('\n', out);
}

static void write_more(uint32_t hidden, const char *indent, FILE *out)
{
	if (hidden)
		fprintf(out, "%s... %u more\n", indent, hidden);
}

/* The site is shown even if it is behind the last line. */
void text_frames(const struct shown_stack *s, uint32_t lines, const char *indent, FILE *out)
{
	uint32_t end = s->n < lines ? s->n : lines, at = 0;

	if (s->site < s->n && s->site >= end)
		end = lines - 1;
	for (; at < end; at++)
		write_frame(&s->at[at], at == s->site, indent, out);
	if (s->site < s->n && s->site >= end) {
		write_more(shown_count(s, at, s->site), indent, out);
		write_frame(&s->at[s->site], true, indent, out);
		at = s->site + 1;
	}
	write_more(shown_count(s, at, s->n), indent, out);
}

void text_stack(struct model *m, uint32_t id, uint32_t frames, const char *indent, FILE *out)
{
	const struct model_stack *of = &m->stacks.at[id < m->stacks.n ? id : 0];
	struct shown_stack s;

	if (shown_stack(m, id, &s))
		fprintf(out, "%s(out of memory)\n", indent);
	if (m->shown.frames)
		frames = m->shown.frames;
	else if (m->shown.full)
		frames = s.n;
	text_frames(&s, frames, indent, out);
	if (!of->n)
		fprintf(out, "%s(no stack)\n", indent);
	else if (!(of->flags & SS_STACK_COMPLETE))
		fprintf(out, "%s(incomplete stack)\n", indent);
}

void text_suppressed(const struct model *m, const char *label, FILE *out)
{
	const struct group *g = &m->suppressed.sum;

	if (m->suppressed.stacks)
		fprintf(out, "%s%s: %s live in %s, %s allocated\n", label,
			counted(m->suppressed.stacks, "stack"), human(g->live_bytes),
			counted(g->live_blocks, "block"), human(g->allocated_bytes));
}

void text_rest(const struct view *v, uint64_t n, const char *what, FILE *out)
{
	if (v->skip >= n && n)
		fprintf(out, "there %s only %s\n", n == 1 ? "is" : "are", counted(n, what));
	else if (view_end(v, n) < n)
		fprintf(out, "... %s more: --count all shows them\n",
			counted(n - view_end(v, n), what));
}
