/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seccomp filters: the interpreter must end for every program and access only its own data. */
#include "attach/seccomp.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct sock_filter *code;
	struct seccomp_data call;
	uint32_t n;

	input_take(&in, &call, sizeof(call));
	n = (uint32_t)(in.left / sizeof(*code));
	code = malloc(n * sizeof(*code) + 1);
	if (!code)
		return 0;
	memcpy(code, in.at, n * sizeof(*code));
	seccomp_run(code, n, &call);
	free(code);
	return 0;
}
