/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "lib/human.h"

#define TEN	10.0
#define PERCENT 100.0
#define SECOND	1000000000u
#define HOUR	3600u

/* Formats "1.5 MiB"; without the fraction, and as "1M", if that is too long. */
static const char *bytes_text(const char *sign, uint64_t bytes, uint32_t width, char buf[CELL])
{
	char number[24], *point;

	human_bytes(bytes, number);
	if (snprintf(buf, CELL, "%s%s", sign, number) <= (int)width)
		return buf;
	point = strchr(number, '.');
	if (point)
		memmove(point, point + 2, strlen(point + 2) + 1);
	if (snprintf(buf, CELL, "%s%s", sign, number) > (int)width && point)
		snprintf(buf, CELL, "%s%.*s%c", sign, (int)(point - number), number, point[1]);
	return buf;
}

const char *cell_bytes(uint64_t bytes, bool estimated, uint32_t width, char buf[CELL])
{
	return bytes_text(estimated && bytes ? "~" : "", bytes, width, buf);
}

const char *cell_change(double bytes, bool estimated, uint32_t width, char buf[CELL])
{
	double size = round(fabs(bytes));
	const char *sign = size < 1 ? "" : bytes < 0 ? "-" : "+";
	char both[3];

	snprintf(both, sizeof(both), "%s%s", estimated && *sign ? "~" : "", sign);
	return bytes_text(both, (uint64_t)size, width, buf);
}

const char *cell_count(uint64_t n, bool estimated, uint32_t width, char buf[CELL])
{
	static const char unit[] = "kMGTPE";
	const char *sign = estimated && n ? "~" : "";
	double v = (double)n;

	if (snprintf(buf, CELL, "%s%s", sign, thousands(n)) <= (int)width)
		return buf;
	for (size_t u = 0; u < strlen(unit); u++) {
		v /= 1000;
		if (snprintf(buf, CELL, "%s%.1f %c", sign, v, unit[u]) <= (int)width && v < 1000)
			break;
	}
	return buf;
}

const char *cell_rate(double rate, bool estimated, uint32_t width, char buf[CELL])
{
	if (rate <= 0)
		return snprintf(buf, CELL, "0"), buf;
	if (rate >= TEN)
		return cell_count((uint64_t)llround(rate), estimated, width, buf);
	snprintf(buf, CELL, "%s%.1f", estimated ? "~" : "", rate);
	return buf;
}

const char *cell_share(double share, char buf[CELL])
{
	if (share < 0)
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, "%.0f%%", PERCENT * share);
	return buf;
}

const char *cell_time(uint64_t ns, char buf[CELL])
{
	uint64_t s = ns / SECOND;

	snprintf(buf, CELL, "%llu:%02u:%02u", (unsigned long long)(s / HOUR),
		 (unsigned int)(s % HOUR / 60), (unsigned int)(s % 60));
	return buf;
}
