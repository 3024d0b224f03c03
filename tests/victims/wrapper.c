/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A library to be preloaded: an interposer like those of debugging tools.  It finds the next
 * allocator by dlsym(RTLD_NEXT) and passes every call to it.  With HEADER=16 it puts a header of 16
 * bytes before each block.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef HEADER
#define HEADER 0
#endif

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

static void *(*next_malloc)(size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

static void find_next(void)
{
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

static void *out(char *p)
{
	return p ? p + HEADER : NULL;
}

static void *in(void *p)
{
	return p ? (char *)p - HEADER : NULL;
}

void *malloc(size_t size)
{
	if (!next_malloc)
		find_next();
	return out(next_malloc(size + HEADER));
}

void *calloc(size_t n, size_t size)
{
	void *p = malloc(n * size);

	return p ? memset(p, 0, n * size) : NULL;
}

void *realloc(void *p, size_t size)
{
	if (!next_realloc)
		find_next();
	return out(next_realloc(in(p), size + HEADER));
}

void free(void *p)
{
	if (!next_free)
		find_next();
	next_free(in(p));
}
