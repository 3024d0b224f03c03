/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct base64 {
	FILE *to;
	uint32_t bits;	/* of the bytes that are not written yet */
	unsigned int n; /* their number, less than 3 */
};

/* Writes @n bytes as @n + 1 digits and the padding. */
static void put_group(const struct base64 *b, uint32_t bits, unsigned int n)
{
	for (unsigned int i = 0; i < 4; i++)
		putc(i <= n ? digits[bits >> (18 - 6 * i) & 63] : '=', b->to);
}

static ssize_t base64_write(void *ctx, const char *data, size_t n)
{
	struct base64 *b = ctx;

	for (size_t i = 0; i < n; i++) {
		b->bits = b->bits << 8 | (unsigned char)data[i];
		if (++b->n < 3)
			continue;
		put_group(b, b->bits, 3);
		b->bits = b->n = 0;
	}
	return ferror(b->to) ? 0 : (ssize_t)n;
}

static int base64_close(void *ctx)
{
	struct base64 *b = ctx;
	int ret;

	if (b->n)
		put_group(b, b->bits << 8 * (3 - b->n), b->n);
	ret = ferror(b->to) ? -1 : 0;
	free(b);
	errno = ret ? EIO : 0;
	return ret;
}

FILE *base64_stream(FILE *to)
{
	cookie_io_functions_t io = {.write = base64_write, .close = base64_close};
	struct base64 *b = calloc(1, sizeof(*b));
	FILE *out;

	if (!b)
		return NULL;
	b->to = to;
	out = fopencookie(b, "w", io);
	if (!out)
		free(b);
	return out;
}
