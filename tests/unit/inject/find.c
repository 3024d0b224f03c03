/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks which functions are hooked in real processes with each allocator.  MEMPROF_TABLE=1 prints
 * all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inject/place.h"
#include "inject/hooks/find.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static char directory[] = "/tmp/memprof-symbols-XXXXXX";

struct victim {
	pid_t pid;
	struct target t;
	struct maps maps;
	struct hook_plan plan;
};

static bool maps_mention(const struct maps *maps, const char *text)
{
	vec_for_each (&maps->list, m) {
		if (strstr(m->path, text))
			return true;
	}
	return false;
}

/* Runs a program until it waits for its standard input, and plans its hooks. */
static void start(struct victim *v, const char *program, const char *preload)
{
	int in[2], out[2];
	char byte;

	memset(v, 0, sizeof(*v));
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (!v->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(out[0], &byte, 1), 1); /* the program has started */
	close(out[0]);
	v->t.pid = v->pid;
	v->t.arch = &arch_x86_64;
	assert_int_equal(mem_open(&v->t.mem, v->pid), 0);
	assert_int_equal(maps_read(v->pid, &v->maps), 0);
	if (preload)
		assert_true(maps_mention(&v->maps, strrchr(preload, '/')));
	assert_int_equal(hook_plan_make(&v->t, &v->maps, NULL, &v->plan, NULL), 0);
}

static void stop(struct victim *v)
{
	kill(v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	hook_plan_free(&v->plan);
	maps_free(&v->maps);
	mem_close(&v->t.mem);
}

static const struct planned_hook *find(const struct victim *v, const char *module, const char *name)
{
	vec_for_each (&v->plan.hooks, h) {
		if (!strcmp(h->name, name) && !strncmp(h->module, module, strlen(module)))
			return h;
	}
	return NULL;
}

static enum arch_refusal try_patch(const struct victim *v, const struct planned_hook *h)
{
	uint64_t slot = place_near(&v->maps, h->addr, h->addr, arch_x86_64.patch.reach, 16384);
	size_t size = h->end - h->addr;
	uint8_t *code = malloc(size);
	enum arch_refusal refusal;
	struct arch_patch p;

	assert_non_null(code);
	assert_int_not_equal(slot, 0);
	assert_int_equal(mem_read(&v->t.mem, h->addr, code, size), 0);
	refusal = arch_x86_64.patch.plan(code, size, h->addr, slot + 64, slot + 96, &p);
	free(code);
	return refusal;
}

/* Checks what must be true of any plan.  Return: the number of functions that would be missed. */
static int check(const struct victim *v)
{
	bool print = getenv("MEMPROF_TABLE");
	int refused = 0;

	if (print)
		print_message("# %s; refused: %s\n", v->plan.allocators, v->plan.refused);
	vec_for_each (&v->plan.hooks, h) {
		enum arch_refusal refusal = try_patch(v, h);
		const struct map *map = maps_find(&v->maps, h->addr);

		if (print)
			print_message("# %-24s %-36s %4lu bytes %s\n", h->module, h->name,
				      (unsigned long)(h->end - h->addr),
				      arch_refusal_text(refusal));
		/* Calls of a function that only calls another hooked one are recorded there. */
		refused +=
		    refusal != ARCH_OK && !hook_calls_hooked((struct target *)&v->t, &v->plan, h);
		assert_non_null(map);
		assert_true(map->exec);
		assert_true(h->end > h->addr && h->end <= map->end);
		assert_true(h->map_start == map->start && h->map_end == map->end);
		assert_true(h->ino == map->ino && h->map_offset == map->offset);
		if (h->kind == SS_HOOK_ALLOC_THROW) {
			assert_true(h->sibling >= 0 || h->sibling_addr);
			if (h->sibling >= 0)
				assert_int_equal(v->plan.hooks.at[h->sibling].kind, SS_HOOK_ALLOC);
		}
		vec_for_each (&v->plan.hooks, other) {
			assert_true(other == h || other->addr != h->addr);
		}
	}
	return refused;
}

static void all_plannable(const struct victim *v, const char *module, const char *const *names)
{
	for (; *names; names++) {
		const struct planned_hook *h = find(v, module, *names);
		enum arch_refusal refusal;

		if (!h)
			fail_msg("%s in %s is not planned", *names, module);
		refusal = try_patch(v, h);
		if (refusal != ARCH_OK)
			fail_msg("%s in %s: %s", *names, module, arch_refusal_text(refusal));
	}
}

static void none_planned(const struct victim *v, const char *module, const char *const *names)
{
	for (; *names; names++) {
		if (find(v, module, *names))
			fail_msg("%s in %s is planned", *names, module);
	}
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *compile(const char *name, const char *compiler, const char *options,
			   const char *source)
{
	static char path[200];
	char command[600], file[220];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	snprintf(file, sizeof(file), "%s.%s", path, strstr(compiler, "g++") ? "cc" : "c");
	f = fopen(file, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "%s -w -O2 -fno-builtin -o %s %s %s 2>&1", compiler,
		 path, file, options);
	return system(command) ? NULL : path;
}

static const char plain[] = "#include <stdlib.h>\n"
			    "#include <unistd.h>\n"
			    "#include <sys/mman.h>\n"
			    "int main(void) {\n"
			    "	void *p = realloc(malloc(10), 20), *q = 0;\n"
			    "	free(p); free(calloc(2, 3));\n"
			    "	if (!posix_memalign(&q, 64, 64)) free(q);\n"
			    "	q = mmap(0, 4096, 3, 34, -1, 0);\n"
			    "	q = mremap(q, 4096, 8192, 1); munmap(q, 8192);\n"
			    "	write(1, \"x\", 1);\n"
			    "	return (int)read(0, &p, 1);\n"
			    "}\n";

static void test_glibc(void **state)
{
	const char *program = compile("plain", "gcc", "", plain);
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "glibc"));
	assert_string_equal(v.plan.refused, "");
	all_plannable(&v, "libc.so.6",
		      NAMES("malloc", "calloc", "realloc", "free", "memalign", "posix_memalign",
			    "valloc", "pvalloc", "reallocarray", "mallopt", "mmap", "munmap",
			    "mremap", "shmat", "shmdt", "prctl"));
	assert_true(find(&v, "libc.so.6", "malloc")->glibc_chunks);
	assert_true(find(&v, "libc.so.6", "posix_memalign")->glibc_chunks);
	assert_false(find(&v, "libc.so.6", "mmap")->glibc_chunks);
	none_planned(&v, "ld-linux", NAMES("malloc", "free", "mmap", "munmap"));
	/* A second run finds nothing new. */
	{
		struct hook_plan again;

		assert_int_equal(hook_plan_make(&v.t, &v.maps, &v.plan, &again, NULL), 0);
		assert_int_equal(again.hooks.n, 0);
		hook_plan_free(&again);
	}
	stop(&v);
}

static void preloaded(struct victim *v, const char *library)
{
	const char *program = compile("plain", "gcc", "", plain);

	assert_non_null(program);
	if (access(library, R_OK)) {
		print_message("skipped: %s is not installed\n", library);
		skip();
	}
	start(v, program, library);
	/* The C library's malloc is hooked, too, and must not be taken for the library's. */
	all_plannable(v, "libc.so.6", NAMES("malloc", "free"));
	assert_true(find(v, "libc.so.6", "malloc")->glibc_chunks);
}

static void test_jemalloc(void **state)
{
	struct victim v;

	(void)state;
	preloaded(&v, LIB "libjemalloc.so.2");
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "jemalloc"));
	all_plannable(&v, "libjemalloc",
		      NAMES("malloc", "calloc", "realloc", "free", "memalign", "posix_memalign",
			    "aligned_alloc", "valloc", "mallocx", "rallocx", "xallocx", "dallocx",
			    "sdallocx", "_Znwm", "_ZnwmRKSt9nothrow_t", "_ZdlPvm"));
	/* jmp free@plt, jmp sdallocx@plt: calls of these would be counted twice. */
	none_planned(&v, "libjemalloc",
		     NAMES("_ZdlPv", "_ZdaPv", "_ZdlPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t",
			   "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t"));
	assert_false(find(&v, "libjemalloc", "malloc")->glibc_chunks);
	stop(&v);
}

static void test_tcmalloc(void **state)
{
	struct victim v;

	(void)state;
	preloaded(&v, LIB "libtcmalloc_minimal.so.4");
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "tcmalloc"));
	all_plannable(&v, "libtcmalloc",
		      NAMES("malloc", "calloc", "realloc", "free", "memalign", "posix_memalign",
			    "valloc", "pvalloc", "_Znwm", "_ZnwmRKSt9nothrow_t", "_ZdlPvm", "mmap",
			    "munmap"));
	assert_false(find(&v, "libtcmalloc", "malloc")->glibc_chunks);
	stop(&v);
}

static void test_mimalloc(void **state)
{
	struct victim v;

	(void)state;
	preloaded(&v, LIB "libmimalloc.so.2");
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "mimalloc"));
	all_plannable(&v, "libmimalloc",
		      NAMES("malloc", "calloc", "realloc", "free", "posix_memalign", "mi_zalloc",
			    "mi_malloc_aligned", "mi_heap_malloc", "_Znwm"));
	/* jmp mi_free@plt, which is free */
	none_planned(&v, "libmimalloc", NAMES("cfree", "mi_cfree", "mi_free"));
	assert_false(find(&v, "libmimalloc", "malloc")->glibc_chunks);
	stop(&v);
}

static void test_static_glibc(void **state)
{
	const char *program = compile("static-glibc", "gcc", "-static", plain);
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "glibc"));
	all_plannable(&v, "static-glibc",
		      NAMES("malloc", "calloc", "realloc", "free", "posix_memalign", "mmap",
			    "munmap", "mremap"));
	assert_true(find(&v, "static-glibc", "malloc")->glibc_chunks);
	stop(&v);
}

static const char with_new[] =
    "#include <new>\n"
    "#include <cstdlib>\n"
    "#include <unistd.h>\n"
    "int main() {\n"
    "	delete new int(getpid()); delete[] new (std::nothrow) char[100];\n"
    "	free(malloc(3)); write(1, \"x\", 1); char c; return read(0, &c, 1);\n"
    "}\n";

/* libstdc++'s operators are in the same module as malloc, and call it. */
static void test_static_cxx(void **state)
{
	const char *program = compile("static-cxx", "g++", "-static", with_new);
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	all_plannable(&v, "static-cxx", NAMES("malloc", "free"));
	none_planned(&v, "static-cxx", NAMES("_Znwm", "_ZnwmRKSt9nothrow_t", "_ZdlPv", "_ZdaPv"));
	stop(&v);
}

#define WITH_ALIGNED_NEW(own)                                                                      \
	"#include <new>\n"                                                                         \
	"#include <unistd.h>\n" own "int main() {\n"                                               \
	"	write(1, \"x\", 1); char c;\n"                                                           \
	"	operator delete(operator new(33, std::align_val_t(64)), std::align_val_t(64));\n"        \
	"	return read(0, &c, 1);\n"                                                                \
	"}\n"

/* aligned_alloc gets a rounded size, so the C++ library's aligned operator new is hooked; its other
 * operators are not. */
static void test_aligned_new(void **state)
{
	const char *program = compile("aligned-new", "g++", "", WITH_ALIGNED_NEW(""));
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	all_plannable(&v, "libstdc++.so", NAMES("_ZnwmSt11align_val_t"));
	assert_true(find(&v, "libstdc++.so", "_ZnwmSt11align_val_t")->glibc_chunks);
	none_planned(&v, "libstdc++.so",
		     NAMES("_Znwm", "_ZnamSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t",
			   "_ZdlPvSt11align_val_t"));
	stop(&v);
}

/* The aligned operator new of a program can take its memory from anywhere. */
static void test_own_aligned_new(void **state)
{
	const char *program = compile(
	    "own-aligned-new", "g++", "",
	    WITH_ALIGNED_NEW("alignas(64) static char pool[1000];\n"
			     "void *operator new(std::size_t, std::align_val_t) { return pool; }\n"
			     "void operator delete(void *, std::align_val_t) noexcept {}\n"));
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	none_planned(&v, "own-aligned-new", NAMES("_ZnwmSt11align_val_t"));
	stop(&v);
}

static void musl(const char *name, const char *options)
{
	const char *program;
	struct victim v;

	if (access("/usr/bin/musl-gcc", X_OK)) {
		print_message("skipped: musl-gcc is not installed\n");
		skip();
	}
	program = compile(name, "musl-gcc", options, plain);
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	assert_non_null(strstr(v.plan.allocators, "musl"));
	all_plannable(&v, options[0] ? name : "libc.so",
		      NAMES("malloc", "calloc", "realloc", "free", "posix_memalign", "mmap",
			    "munmap", "mremap"));
	assert_false(find(&v, options[0] ? name : "libc.so", "malloc")->glibc_chunks);
	stop(&v);
}

static void test_musl(void **state)
{
	(void)state;
	musl("musl", "");
}

static void test_static_musl(void **state)
{
	(void)state;
	musl("static-musl", "-static");
}

/* A program with its own allocator: its blocks have no chunk headers, and its operator delete calls
 * its free, directly or through the PLT. */
static const char own[] =
    "#include <stddef.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static char pool[1 << 20]; static size_t used;\n"
    "extern \"C\" void *malloc(size_t n) { used += (n + 31) & ~15; return pool + used - n; }\n"
    "extern \"C\" __attribute__((noinline)) void free(void *p) { __asm__ volatile(\"\" :: "
    "\"r\"(p)); used += !p; }\n"
    "extern \"C\" void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }\n"
    "extern \"C\" void *realloc(void *p, size_t n) {\n"
    "	void *q = malloc(n); if (p) memcpy(q, p, n); return q; }\n"
    "extern \"C\" void cfree(void *p) { free(p); used += !!p; }\n"
    "void operator delete(void *p) noexcept { free(p); }\n"
    "void operator delete(void *p, size_t) noexcept { if (p) { used++; free(p); } }\n"
    "int main() { write(1, \"x\", 1); char c; return read(0, &c, 1); }\n";

/* A free function that calls another one has a hook of the kind "through", so that the agent
 * recognizes the inner call, or no hook. */
static void through_or_not(struct victim *v, const char *module, const char *const *name)
{
	for (; *name; name++) {
		const struct planned_hook *h = find(v, module, *name);

		if (h)
			assert_int_equal(h->kind, SS_HOOK_FREE_THROUGH);
	}
}

static void test_own_allocator(void **state)
{
	static const char *const how[] = {"-Wl,-z,lazy", "-Wl,-z,now -fno-plt",
					  "-Wl,-z,lazy -fPIC -rdynamic -fno-inline", "-static-pie"};

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		const char *program = compile("own", "g++", how[i], own);
		struct victim v;

		assert_non_null(program);
		start(&v, program, NULL);
		check(&v);
		all_plannable(&v, "own", NAMES("malloc", "free"));
		assert_false(find(&v, "own", "malloc")->glibc_chunks);
		through_or_not(&v, "own", NAMES("cfree", "_ZdlPv", "_ZdlPvm"));
		stop(&v);
	}
}

/* The linker merges the code of nobodys() and mallopt(), and that of nothing() and free(). */
static const char folded[] =
    "#include <stddef.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static char pool[1 << 20]; static size_t used;\n"
    "void *malloc(size_t n) { used += (n + 31) & ~15; return pool + used - n; }\n"
    "void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }\n"
    "void *realloc(void *p, size_t n) { return p ? memcpy(malloc(n), p, n) : malloc(n); }\n"
    "void free(void *p) {}\n"
    "void nothing(void) {}\n"
    "int mallopt(int param, int value) { return 0; }\n"
    "int nobodys(void) { return 0; }\n"
    "void cfree(void *p) { *(char *volatile *)&pool = p; }\n"
    "int main(void) {\n"
    "	char c; int (*volatile f)(void) = nobodys; void (*volatile g)(void) = nothing;\n"
    "	int (*volatile m)(int, int) = mallopt; void (*volatile r)(void *) = free;\n"
    "	if ((void *)f != (void *)m || (void *)g != (void *)r) return 1;\n"
    "	write(1, \"x\", 1); return read(0, &c, 1); }\n";

static void test_folded(void **state)
{
	static const char *const how[] = {"", "-fcf-protection", "-fno-omit-frame-pointer"};

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		char options[200];
		struct victim v;
		const char *program;

		snprintf(options, sizeof(options),
			 "-ffunction-sections -fuse-ld=gold -Wl,--icf=all -rdynamic %s", how[i]);
		program = compile("folded", "gcc", options, folded);
		assert_non_null(program);
		start(&v, program, NULL);
		check(&v);
		all_plannable(&v, "folded", NAMES("malloc", "calloc", "realloc", "cfree"));
		none_planned(&v, "folded", NAMES("mallopt", "free"));
		assert_non_null(strstr(v.plan.refused, "free in folded (its code only returns"));
		assert_null(strstr(v.plan.refused, "mallopt"));
		stop(&v);
	}
}

/* Functions that have only the names of allocator functions. */
static const char namesakes[] =
    "#include <unistd.h>\n"
    "static __attribute__((noinline)) int cfree(int n)\n"
    "{ __asm__ volatile(\"\"); return n + 1; }\n"
    "__attribute__((noinline)) int valloc(int n)\n"
    "{ __asm__ volatile(\"\"); return n + 2; }\n"
    "int main(int n) { write(1, \"x\", 1); read(0, &n, 1); return valloc(n) + "
    "cfree(n); }\n";

static void test_namesakes(void **state)
{
	const char *program = compile("namesakes", "gcc", "-fno-builtin", namesakes);
	struct victim v;

	(void)state;
	assert_non_null(program);
	start(&v, program, NULL);
	assert_int_equal(check(&v), 0);
	none_planned(&v, "namesakes", NAMES("cfree", "valloc"));
	all_plannable(&v, "libc.so.6", NAMES("malloc", "free", "valloc"));
	stop(&v);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_glibc),	  cmocka_unit_test(test_jemalloc),
	    cmocka_unit_test(test_tcmalloc),	  cmocka_unit_test(test_mimalloc),
	    cmocka_unit_test(test_static_glibc),  cmocka_unit_test(test_static_cxx),
	    cmocka_unit_test(test_aligned_new),	  cmocka_unit_test(test_own_aligned_new),
	    cmocka_unit_test(test_musl),	  cmocka_unit_test(test_static_musl),
	    cmocka_unit_test(test_own_allocator), cmocka_unit_test(test_namesakes),
	    cmocka_unit_test(test_folded),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
