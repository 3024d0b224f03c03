/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/base64.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <sys/types.h>

#define AT_ONCE 3072 /* bytes */

struct base64 {
	FILE *to;
	struct base64_encode_ctx encoder;
};

static ssize_t base64_write(void *ctx, const char *data, size_t n)
{
	struct base64 *b = ctx;
	char text[BASE64_ENCODE_LENGTH(AT_ONCE)];

	for (size_t done = 0; done < n; done += AT_ONCE) {
		size_t part = n - done < AT_ONCE ? n - done : AT_ONCE;
		size_t digits =
		    base64_encode_update(&b->encoder, text, part, (const uint8_t *)data + done);

		fwrite(text, 1, digits, b->to);
	}
	return ferror(b->to) ? 0 : (ssize_t)n;
}

static int base64_close(void *ctx)
{
	struct base64 *b = ctx;
	char text[BASE64_ENCODE_FINAL_LENGTH];
	size_t digits = base64_encode_final(&b->encoder, text);
	int ret;

	fwrite(text, 1, digits, b->to);
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
	base64_encode_init(&b->encoder);
	out = fopencookie(b, "w", io);
	if (!out)
		free(b);
	return out;
}
