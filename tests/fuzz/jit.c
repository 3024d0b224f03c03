/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files in which programs name the code that they generate: perf maps and jitdumps. */
#include "fuzz.h"
#include "unwind/symbols/jit_names.h"
#include "unwind/symbols/jitdump.h"
#include "unwind/symbols/perf_map.h"

static const uint64_t wanted[] = {0x1000, 0x1010, 0x2000, 0x7f0000001000, UINT64_MAX};

static void check(const struct mp_symbol *s)
{
	if (!s->function || !*s->function || !s->raw_function ||
	    strlen(s->function) > 5 * JIT_MAX_NAME || (s->source && !*s->source))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_names *j = jit_names_new(wanted, sizeof(wanted) / sizeof(wanted[0]));
	struct input in = {data, size};
	uint64_t since = input_number(&in, 1);
	struct mp_symbol symbol;
	struct jit_read r;
	char path[64];
	int fd = input_file(in.at, in.left, path);

	if (!j || fd < 0)
		abort();
	ignore_result(perf_map_read(fd, since * 4, j, &r));
	ignore_result(jitdump_read(fd, since * 4, j, &r));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (jit_names_find(j, wanted[i], &symbol))
			check(&symbol);
	}
	close(fd);
	jit_names_free(j);
	return 0;
}
