/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/human.h"

#include <stdio.h>
#include <string.h>

#define PLACES 8

const char *human_bytes(uint64_t bytes, char *buf)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	int u = 0;

	while (v >= 1024 && u < 6) {
		v /= 1024;
		u++;
	}
	snprintf(buf, 24, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
	return buf;
}

const char *human_number(uint64_t n, char *buf)
{
	char digits[24], *out = buf;
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = 0;
	return buf;
}

const char *human(uint64_t bytes)
{
	static _Thread_local char place[PLACES][32];
	static _Thread_local unsigned int next;

	return human_bytes(bytes, place[next++ % PLACES]);
}

const char *thousands(uint64_t n)
{
	static _Thread_local char place[PLACES][32];
	static _Thread_local unsigned int next;

	return human_number(n, place[next++ % PLACES]);
}

const char *counted(uint64_t n, const char *noun)
{
	static _Thread_local char place[PLACES][64];
	static _Thread_local unsigned int next;
	char number[32], *out = place[next++ % PLACES];
	size_t length = strlen(noun);
	const char *ending = plural(n);

	if (n != 1 && noun[length - 1] == 'y') {
		length--;
		ending = "ies";
	} else if (n != 1 && strchr("sh", noun[length - 1])) {
		ending = "es";
	}
	snprintf(out, sizeof(place[0]), "%s %.*s%s", human_number(n, number), (int)length, noun,
		 ending);
	return out;
}

const char *human_part(uint32_t ppm)
{
	static _Thread_local char place[PLACES][32];
	static _Thread_local unsigned int next;
	char *out = place[next++ % PLACES];

	if (ppm == UINT32_MAX)
		return "over 100000 %";
	snprintf(out, sizeof(place[0]), "%.*f %%", ppm < 100000 ? 2 : 0, (double)ppm / 1e4);
	return out;
}
