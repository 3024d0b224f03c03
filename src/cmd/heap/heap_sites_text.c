/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof heap prints about where blocks were allocated. */
#include <stdio.h>
#include "cmd/heap/heap_retained.h"
#include "export/text/terminal.h"
#include "lib/human.h"
#include "lib/path.h"
#include "lib/printable.h"

void heap_write_site(const struct heap_site *site, FILE *out)
{
	const struct frame *f = site->at;
	const double part = 100.0 * (double)site->bytes / (double)site->known;

	fprintf(out, ", allocated at %s", printable(f->function));
	if (f->source)
		fprintf(out, "  %s:%u", printable(path_base(f->source)), f->line);
	else if (f->library)
		fprintf(out, "  [%s]", printable(f->library));
	if (part < 99.5)
		fprintf(out, " (%.0f %%)", part);
}

void heap_print_sites(const struct heap_sites *s)
{
	if (!s->of)
		return;
	printf("allocated at: from %s%s; it has %s (%s) of the blocks below",
	       printable(s->rec.path), s->rec.live ? ", still recording" : "",
	       thousands(s->known_count), human(s->known_bytes));
	if (s->unknown_count)
		printf(", not %s (%s), allocated before it began%s%s", thousands(s->unknown_count),
		       human(s->unknown_bytes), s->rec.ended_ns ? ", or after it ended" : "",
		       s->rec.sampled ? ", or not sampled" : "");
	putchar('\n');
}
