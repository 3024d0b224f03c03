/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Texts that people and programs give: values of options, mangled names. */
#include "cmd/cmd.h"
#include "fuzz.h"
#include "unwind/symbols.h"

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
	free(text);
	return 0;
}
