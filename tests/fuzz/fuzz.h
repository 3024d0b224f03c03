/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the fuzz targets: takes values from the input, and makes files of it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arch/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

/* Copies the next @n bytes of the input to @out; zeros after its end. */
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

/* The architecture that the next byte of the input selects. */
static inline const struct arch *input_arch(struct input *in)
{
	size_t n = 0;

	while (arch_all[n])
		n++;
	return arch_all[input_number(in, 1) % n];
}

/* Makes a file in memory with these bytes.  Return: its descriptor; @path gets its path. */
static inline int input_file(const void *data, size_t size, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* Return: a NUL-terminated copy on the heap, so that ASan detects a read after its end. */
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
