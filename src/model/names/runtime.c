/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/runtime.h"

#include <ctype.h>
#include <string.h>
#include "model/names/cxx_name.h"

#define FIRST_PAGE 4096u
#define LENGTH(a)  (sizeof(a) / sizeof((a)[0]))

struct prefix {
	const char *text;
	enum runtime runtime;
};

/* What follows is a version, or ".so": see is_library(). */
static const struct prefix libraries[] = {
    {"libc", RUNTIME_LIBC},
    {"libc.musl", RUNTIME_LIBC},
    {"ld-linux", RUNTIME_LIBC},
    {"ld-musl", RUNTIME_LIBC},
    {"ld", RUNTIME_LIBC},
    {"ld64", RUNTIME_LIBC},
    {"libpthread", RUNTIME_LIBC},
    {"libdl", RUNTIME_LIBC},
    {"libm", RUNTIME_LIBC},
    {"librt", RUNTIME_LIBC},
    {"libresolv", RUNTIME_LIBC},
    {"libgcc_s", RUNTIME_LIBC},
    {"libstdc++", RUNTIME_LIBSTDCXX},
    {"libsupc++", RUNTIME_LIBSTDCXX},
    {"libc++", RUNTIME_LIBCXX},
    {"libc++abi", RUNTIME_LIBCXX},
    {"libjemalloc", RUNTIME_ALLOCATOR},
    {"libtcmalloc", RUNTIME_ALLOCATOR},
    {"libmimalloc", RUNTIME_ALLOCATOR},
    {"libtcmalloc_minimal", RUNTIME_ALLOCATOR},
};

static const struct prefix scopes[] = {
    {"std::__1::", RUNTIME_LIBCXX},
    {"std::", RUNTIME_LIBSTDCXX},
    {"__gnu_cxx::", RUNTIME_LIBSTDCXX},
    {"__cxxabiv1::", RUNTIME_LIBSTDCXX},
    {"operator new", RUNTIME_LIBSTDCXX},
    {"operator delete", RUNTIME_LIBSTDCXX},
    {"__cxa_", RUNTIME_LIBSTDCXX},
    {"tcmalloc::", RUNTIME_ALLOCATOR},
    {"__libc_start_", RUNTIME_LIBC},
    {"_dl_relocate_static_pie", RUNTIME_LIBC},
    {"__GI__IO_", RUNTIME_LIBC},
    {"__GI___libc_", RUNTIME_LIBC},
    {"__rust_", RUNTIME_RUST},
    {"__rdl_", RUNTIME_RUST},
    {"__rg_", RUNTIME_RUST},
    {"_rjem_", RUNTIME_ALLOCATOR},
    {"v8::", RUNTIME_V8},
    {"Builtins_", RUNTIME_V8},
    {"node::", RUNTIME_NODE},
};

/* Generated code that is not a function of a script (V8's Logger). */
static const struct prefix generated[] = {
    {"Builtin:", RUNTIME_V8},	      {"Stub:", RUNTIME_V8},   {"Handler:", RUNTIME_V8},
    {"BytecodeHandler:", RUNTIME_V8}, {"RegExp:", RUNTIME_V8},
};

static const struct prefix rust_scopes[] = {
    {"std::", RUNTIME_RUST},  {"core::", RUNTIME_RUST},	 {"alloc::", RUNTIME_RUST},
    {"<std::", RUNTIME_RUST}, {"<core::", RUNTIME_RUST}, {"<alloc::", RUNTIME_RUST},
};

static const struct prefix sources[] = {
    {"/include/c++/v1/", RUNTIME_LIBCXX},
    {"/include/c++/", RUNTIME_LIBSTDCXX},
    {"/rustc/", RUNTIME_RUST},
    {"/runtime/cgo/", RUNTIME_GO},
};

static const char *const libc_functions[] = {
    "_start", "start_thread", "clone", "__clone", "clone3", "__clone3",
};

/* Prefixes of the malloc family: allocators and sanitizers export it under their own, too. */
static const struct prefix families[] = {
    {"__libc_", RUNTIME_LIBC},
    {"__GI_", RUNTIME_LIBC},
    {"je_", RUNTIME_ALLOCATOR},
    {"_rjem_", RUNTIME_ALLOCATOR},
    {"_rjem_je_", RUNTIME_ALLOCATOR},
    {"mi_", RUNTIME_ALLOCATOR},
    {"tc_", RUNTIME_ALLOCATOR},
    {"__interceptor_", RUNTIME_ALLOCATOR},
    {"", RUNTIME_LIBC},
};

static const char *const family[] = {
    "malloc",	      "calloc",	     "realloc",	     "reallocarray",  "memalign",  "aligned_alloc",
    "posix_memalign", "valloc",	     "pvalloc",	     "strdup",	      "strndup",   "__strdup",
    "__strndup",      "mallocx",     "rallocx",	     "mmap",	      "mmap64",	   "__mmap",
    "__mmap64",	      "mremap",	     "brk",	     "sbrk",	      "__sbrk",	   "__brk",
    "malloc_impl",    "_int_malloc", "_int_realloc", "_int_memalign", "sysmalloc", "tcache_init",
    "cfree",	      "free",	     "munmap",	     "_int_free",
};

static bool one_of(const char *const *list, size_t count, const char *name, size_t n)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(list[i]) == n && !strncmp(list[i], name, n))
			return true;
	}
	return false;
}

/* Is @name @library and its version?  "libc.so.6", "libc-2.31.so", "libstdc++.so.6.0.30". */
static bool is_library(const char *name, const char *library)
{
	size_t n = strlen(library);
	const char *rest = name + n;

	if (strncmp(name, library, n) != 0)
		return false;
	if (*rest == '-' && (isdigit((unsigned char)rest[1]) || !strncmp(library, "ld-", 3)))
		return strstr(rest, ".so") != NULL;
	return !strncmp(rest, ".so", 3) || !strcmp(library, "libc.musl");
}

static enum runtime of_library(const char *library)
{
	for (size_t i = 0; i < LENGTH(libraries); i++) {
		if (is_library(library, libraries[i].text))
			return libraries[i].runtime;
	}
	return RUNTIME_NONE;
}

static enum runtime of_prefix(const struct prefix *p, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(name, p[i].text, strlen(p[i].text)))
			return p[i].runtime;
	}
	return RUNTIME_NONE;
}

/* Symbols of Rust: "_R...", or as of C++ with a hash at the end, "...17h0123456789abcdefE". */
static bool is_rust(const char *raw)
{
	size_t n = raw ? strlen(raw) : 0;

	if (n > 2 && !strncmp(raw, "_R", 2))
		return true;
	return n > 20 && !strncmp(raw + n - 20, "17h", 3) && raw[n - 1] == 'E' &&
	       strspn(raw + n - 17, "0123456789abcdef") == 16;
}

static enum runtime of_family(const char *name, size_t n)
{
	for (size_t i = 0; i < LENGTH(families); i++) {
		size_t prefix = strlen(families[i].text);

		if (n > prefix && !strncmp(name, families[i].text, prefix) &&
		    one_of(family, LENGTH(family), name + prefix, n - prefix))
			return prefix ? families[i].runtime : RUNTIME_LIBC;
	}
	return RUNTIME_NONE;
}

static enum runtime of_function(const struct frame *f)
{
	bool nice = f->raw_function && strcmp(f->raw_function, f->function) != 0;
	struct cxx_span q = {f->function, strcspn(f->function, "@.")};
	enum runtime r = RUNTIME_NONE;

	if (nice)
		q = cxx_qualified(f->function);
	if (is_rust(f->raw_function))
		return of_prefix(rust_scopes, LENGTH(rust_scopes), q.at);
	/* A function of a class that only has the name of one of the family is the user's. */
	if (!nice || !memchr(q.at, ':', q.n))
		r = of_family(q.at, q.n);
	if (r == RUNTIME_NONE && one_of(libc_functions, LENGTH(libc_functions), q.at, q.n))
		r = RUNTIME_LIBC;
	if (r == RUNTIME_NONE)
		r = of_prefix(scopes, LENGTH(scopes), q.at);
	if (r == RUNTIME_NONE && !nice && !strncmp(f->function, "runtime.", 8) && f->source &&
	    strstr(f->source, "/runtime/"))
		r = RUNTIME_GO;
	return r;
}

/* Of code that the program generated. */
static enum runtime of_jit(const struct frame *f)
{
	if (f->source && !strncmp(f->source, "node:", 5))
		return RUNTIME_NODE;
	return of_prefix(generated, LENGTH(generated), f->function);
}

static enum runtime of_source(const char *source)
{
	for (size_t i = 0; i < LENGTH(sources); i++) {
		if (strstr(source, sources[i].text))
			return sources[i].runtime;
	}
	return RUNTIME_NONE;
}

enum runtime runtime_of(const struct frame *f, bool in_program)
{
	enum runtime r;

	if (frame_is_jit(f))
		return of_jit(f);
	r = f->library && !in_program ? of_library(f->library) : RUNTIME_NONE;
	/* No code is in the first page: CARRY_CLEARED_PC (record/pieces/carry.h). */
	if (f->function[0] == '[' && f->address && f->address < FIRST_PAGE)
		return RUNTIME_MEMPROF;
	if (r == RUNTIME_NONE)
		r = of_function(f);
	if (r == RUNTIME_NONE && f->source)
		r = of_source(f->source);
	return r;
}

const char *runtime_text(enum runtime r)
{
	static const char *const text[RUNTIMES] = {[RUNTIME_NONE] = "the program",
						   [RUNTIME_LIBC] = "libc",
						   [RUNTIME_LIBSTDCXX] = "libstdc++",
						   [RUNTIME_LIBCXX] = "libc++",
						   [RUNTIME_RUST] = "Rust's library",
						   [RUNTIME_GO] = "Go's runtime",
						   [RUNTIME_V8] = "V8",
						   [RUNTIME_NODE] = "node",
						   [RUNTIME_ALLOCATOR] = "the allocator",
						   [RUNTIME_MEMPROF] = "memprof"};

	return text[r];
}
