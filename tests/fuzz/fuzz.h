/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the fuzz targets share: an input taken apart piece by piece, and as a file. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next @n bytes into @out; zeros behind the end. */
static inline void input_take(struct input *in, void *out, size_t n)
{
	size_t got = n < in->left ? n : in->left;

	memset(out, 0, n);
	memcpy(out, in->at, got);
	in->at += got;
	in->left -= got;
}

static inline uint64_t input_number(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	input_take(in, &v, bytes);
	return v;
}

/* A file of its own with these bytes; @path gets its name.  Return: descriptor. */
static inline int input_file(const void *data, size_t size, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* A NUL-terminated copy on the heap, so that a read behind its end is seen. */
static inline char *input_text(const uint8_t *data, size_t size)
{
	char *s = malloc(size + 1);

	if (!s)
		abort();
	memcpy(s, data, size);
	s[size] = 0;
	return s;
}

#endif
