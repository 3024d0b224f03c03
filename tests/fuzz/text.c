/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parsers of texts: values of options, mangled names. */
#include "cmd/options/parse.h"
#include "fuzz.h"
#include "model/filter/filter.h"
#include "unwind/symbols/symbols.h"

/* Sets the filter condition with this number to any value. */
static void filter(uint32_t number, const char *value)
{
	struct filter_name name;
	struct mp_err err = {0};
	struct filter f;

	if (!filter_describe(number, &name))
		return;
	filter_init(&f);
	if (filter_set(&f, name.name, value, &err) && !err.what[0])
		abort(); /* refused without a reason */
	filter_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = input_text(data, size);
	uint64_t n;
	pid_t pid;

	if (parse_duration(text, &n) && n > 1000000000000000)
		abort();
	if (parse_bytes(text, &n) && n > 1000000000000000000)
		abort();
	if (parse_pid(text, &pid) && pid <= 0)
		abort();
	free(symbol_demangle(text));
	if (size)
		filter(data[0], text + 1);
	free(text);
	return 0;
}
