/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text.h"

#include <string.h>
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

void text_bold(const struct text_options *o, FILE *out, const char *text)
{
	fprintf(out, o->colour ? "\033[1m%s\033[0m\n" : "%s\n", text);
}

/* Does the frame's name already contain the library?  Without a known function, it is the library
 * and an offset. */
static bool names_library(const struct frame *f)
{
	size_t n = strlen(f->library);

	return !strncmp(f->function, f->library, n) && f->function[n] == '+';
}

void text_stack(struct model *m, uint32_t id, uint32_t frames, const char *indent, FILE *out)
{
	const struct model_stack *s = &m->stacks.at[id < m->stacks.n ? id : 0];
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->n && shown < frames; i++) {
		struct frame f[64];
		uint32_t n = model_frames(m, m->stacks.pc.at[s->first + i], f, 64);

		for (uint32_t k = 0; k < n && shown < frames; k++, shown++) {
			fprintf(out, "%s%s", indent, printable(f[k].function));
			if (f[k].source)
				fprintf(out, "  %s:%u", printable(f[k].source), f[k].line);
			else if (f[k].library && !names_library(&f[k]))
				fprintf(out, "  [%s]", printable(f[k].library));
			fputs(f[k].is_inline ? " (inlined)\n" : "\n", out);
		}
		if (shown == frames && i + 1 < s->n)
			fprintf(out, "%s... %u more\n", indent, s->n - i - 1);
	}
	if (!s->n)
		fprintf(out, "%s(no stack)\n", indent);
	else if (!(s->flags & SS_STACK_COMPLETE))
		fprintf(out, "%s(incomplete stack)\n", indent);
}

void text_rest(const struct view *v, uint64_t n, const char *what, FILE *out)
{
	if (v->skip >= n && n)
		fprintf(out, "there %s only %s\n", n == 1 ? "is" : "are", counted(n, what));
	else if (view_end(v, n) < n)
		fprintf(out, "... %s more: --count, --skip\n", counted(n - view_end(v, n), what));
}
