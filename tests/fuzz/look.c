/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Saved looks at a heap: reads one, compares it with itself and with one of another time, and writes
 * it. */
#include "cmd/heap/heap_growth.h"
#include "fuzz.h"
#include "leaks/growth/look_file.h"

static void compare(const struct look *a, const struct look *b)
{
	const struct look *list[] = {a, b};
	struct growth_request q = {.has_budget = true, .budget = {1000, 60}};
	struct mp_err err = {0};
	struct heap_growth g;
	FILE *out = fopen("/dev/null", "we");

	if (!out)
		abort();
	if (!growth_make(&g, list, 2, &err)) {
		growth_judge(&g, &q.budget);
		growth_json(&g, &q, out);
	} else if (!err.what[0]) {
		abort(); /* refused without a reason */
	}
	growth_free(&g);
	fclose(out);
}

/* What is written must be readable, and the same. */
static void write_and_read(const struct look *l)
{
	struct mp_err err = {0};
	struct look again;
	size_t n;
	char *text;
	FILE *out = open_memstream(&text, &n);

	if (!out || look_write(l, out) || fclose(out) || look_parse(&again, text, "again", &err))
		abort();
	compare(l, &again);
	again.taken_ns += 1000000000;
	compare(l, &again);
	look_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = input_text(data, size);
	struct mp_err err = {0};
	struct look l;

	if (!look_parse(&l, text, "look", &err))
		write_and_read(&l);
	else if (!err.what[0])
		abort();
	look_free(&l);
	free(text);
	return 0;
}
