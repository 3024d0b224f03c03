/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which frames are the user's own code, how names are shortened, and how stacks are folded. */
#include "model/names/shown.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"
#include "model/names/cxx_name.h"
#include "model/names/names.h"
#include "model/names/runtime.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void test_short(void **state)
{
	static const char *const name[][2] = {
	    {"main", "main"},
	    {"ns::f(int) const", "ns::f"},
	    {"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int*, int "
	     "const&)",
	     "std::vector<...>::_M_realloc_insert<...>"},
	    {"std::vector<int, std::allocator<int> >::push_back(int const&)",
	     "std::vector<...>::push_back"},
	    {"std::unique_ptr<Foo, std::default_delete<Foo> > make<Foo>(int)", "make<...>"},
	    {"(anonymous namespace)::record(unsigned long)", "(anonymous namespace)::record"},
	    {"operator new(unsigned long)", "operator new"},
	    {"Foo::operator()(int) const", "Foo::operator()"},
	    {"bool operator< <int>(A<int> const&, A<int> const&)", "operator< <...>"},
	    {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
	     "std::operator<< <...>"},
	    {"Foo::operator->()", "Foo::operator->"},
	    {"Foo::operator std::vector<int>() const", "Foo::operator std::vector<...>"},
	    {"main::{lambda(std::vector<int>&)#1}::operator()(std::vector<int>&) const",
	     "main::{lambda(std::vector<...>&)#1}::operator()"},
	    {"decltype (f(0)) ns::g<int>(int)", "ns::g<...>"},
	    {"void (*std::for_each<int*, void (*)(int)>(int*, int*, void (*)(int)))(int)",
	     "std::for_each<...>"},
	    {"f(int) [clone .constprop.0]", "f"},
	    {"<alloc::vec::Vec<T> as core::clone::Clone>::clone",
	     "<alloc::vec::Vec<...> as core::clone::Clone>::clone"},
	    {"X<int>::f<(E)1>(int)", "X<...>::f<...>"},
	};

	(void)state;
	for (size_t i = 0; i < N(name); i++) {
		char *s = cxx_short(name[i][0]);

		assert_string_equal(s, name[i][1]);
		free(s);
	}
}

static void test_without_arguments(void **state)
{
	static const char *const name[][2] = {
	    {"void ns::f<int>(A<B<int> > const&)", "void ns::f<...>(A<...> const&)"},
	    {"bool operator< <int>(A<int> const&)", "bool operator< <...>(A<...> const&)"},
	    {"Foo::operator->()", "Foo::operator->()"},
	    {"<alloc::vec::Vec<T> as core::clone::Clone>::clone", "<...>::clone"},
	    {"main", "main"},
	};

	(void)state;
	for (size_t i = 0; i < N(name); i++) {
		char *s = cxx_without_arguments(name[i][0]);

		assert_string_equal(s, name[i][1]);
		free(s);
	}
}

static void test_scope(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} of[] = {{"main", 0},
		  {"ns::f", 2},
		  {"std::vector<...>::push_back", 16},
		  {"Foo::operator std::vector<...>", 3},
		  {"main::{lambda(A::B&)#1}::operator()", 23}};

	(void)state;
	for (size_t i = 0; i < N(of); i++)
		assert_int_equal(cxx_scope(of[i].name), of[i].n);
}

/* Unbalanced and unusual names must neither crash nor overrun. */
static void test_odd_names(void **state)
{
	static const char sign[] = "<>(){}[]: -a,operator";

	(void)state;
	for (int n = 0; n < 20000; n++) {
		char name[24] = "", *s;

		for (size_t i = 0; i < sizeof(name) - 1; i++)
			name[i] = rand() % 12 ? sign[(size_t)rand() % (sizeof(sign) - 1)] : 0;
		s = cxx_short(name);
		assert_non_null(s);
		assert_true(cxx_scope(s) <= strlen(s));
		free(s);
	}
}

static void test_runtime(void **state)
{
	static const struct {
		struct frame f;
		bool in_program;
		enum runtime runtime;
	} of[] = {
	    {{.function = "malloc", .library = "libc.so.6"}, false, RUNTIME_LIBC},
	    {{.function = "qsort", .library = "libc-2.31.so"}, false, RUNTIME_LIBC},
	    {{.function = "f", .library = "libcurl.so.4"}, false, RUNTIME_NONE},
	    {{.function = "f", .library = "libc-client.so.2007"}, false, RUNTIME_NONE},
	    {{.function = "f", .library = "ld-linux-x86-64.so.2"}, false, RUNTIME_LIBC},
	    {{.function = "f", .library = "ld-linux-x86-64.so.2"}, true, RUNTIME_NONE},
	    {{.function = "f", .library = "ld-musl-x86_64.so.1"}, false, RUNTIME_LIBC},
	    {{.function = "f", .library = "ldapsearch"}, false, RUNTIME_NONE},
	    {{.function = "x", .library = "libstdc++.so.6.0.30"}, false, RUNTIME_LIBSTDCXX},
	    {{.function = "x", .library = "libc++abi.so.1"}, false, RUNTIME_LIBCXX},
	    {{.function = "x", .library = "libjemalloc.so.2"}, false, RUNTIME_ALLOCATOR},
	    {{.function = "malloc", .library = "prog"}, true, RUNTIME_LIBC},
	    {{.function = "__libc_malloc", .library = "prog"}, true, RUNTIME_LIBC},
	    {{.function = "je_malloc", .library = "prog"}, true, RUNTIME_ALLOCATOR},
	    {{.function = "mi_create", .library = "prog"}, true, RUNTIME_NONE},
	    {{.function = "my_malloc", .library = "prog"}, true, RUNTIME_NONE},
	    {{.function = "_start", .library = "prog"}, true, RUNTIME_LIBC},
	    {{.function = "__libc_start_main@@GLIBC_2.34", .library = "prog"}, true, RUNTIME_LIBC},
	    {{.function = "main", .library = "prog"}, true, RUNTIME_NONE},
	    {{.function = "void std::f<A>(A)", .raw_function = "_ZSt1f"}, true, RUNTIME_LIBSTDCXX},
	    {{.function = "std::__1::f(A)", .raw_function = "_ZNSt3__11f"}, true, RUNTIME_LIBCXX},
	    {{.function = "std::string user::f<A>(A)", .raw_function = "_ZN4user1f"},
	     true,
	     RUNTIME_NONE},
	    {{.function = "Foo::malloc(int)", .raw_function = "_ZN3Foo6mallocEi"},
	     true,
	     RUNTIME_NONE},
	    {{.function = "Foo::operator new(unsigned long)", .raw_function = "_ZN3FoonwEm"},
	     true,
	     RUNTIME_NONE},
	    {{.function = "operator new(unsigned long)", .raw_function = "_Znwm"},
	     true,
	     RUNTIME_LIBSTDCXX},
	    {{.function = "core::f(int)", .raw_function = "_ZN4core1fEi"}, true, RUNTIME_NONE},
	    {{.function = "core::f", .raw_function = "_ZN4core1f17h0123456789abcdefE"},
	     true,
	     RUNTIME_RUST},
	    {{.function = "<alloc::vec::Vec<T> as X>::f", .raw_function = "_RNvX"},
	     true,
	     RUNTIME_RUST},
	    {{.function = "app::f", .raw_function = "_RNvX"}, true, RUNTIME_NONE},
	    {{.function = "swap", .source = "/usr/include/c++/12/bits/move.h"},
	     true,
	     RUNTIME_LIBSTDCXX},
	    {{.function = "runtime.mallocgc", .source = "/usr/lib/go/src/runtime/malloc.go"},
	     true,
	     RUNTIME_GO},
	    {{.function = "x_cgo_init", .source = "/usr/lib/go/src/runtime/cgo/gcc_linux.c"},
	     true,
	     RUNTIME_GO},
	    {{.function = "v8::f(int)", .raw_function = "_ZN2v81fEi"}, true, RUNTIME_V8},
	    {{.function = "Builtins_JSEntry"}, true, RUNTIME_V8},
	    {{.function = "node::f(int)", .raw_function = "_ZN4node1fEi"}, true, RUNTIME_NODE},
	    {{.function = "Builtin:JSEntry", .library = LIBRARY_JIT}, false, RUNTIME_V8},
	    {{.function = "f", .source = "node:fs", .library = LIBRARY_JIT}, false, RUNTIME_NODE},
	    {{.function = "malloc", .source = "/a.js", .library = LIBRARY_JIT},
	     false,
	     RUNTIME_NONE},
	    {{.function = "std::f", .raw_function = "JS:*std::f", .library = LIBRARY_JIT},
	     false,
	     RUNTIME_NONE},
	    {{.function = "?"}, false, RUNTIME_NONE},
	    {{.function = "[live-alloc cleared]", .address = 1}, false, RUNTIME_MEMPROF},
	    {{.function = "[x]", .address = 0x401000}, false, RUNTIME_NONE},
	};

	(void)state;
	for (size_t i = 0; i < N(of); i++)
		assert_int_equal(runtime_of(&of[i].f, of[i].in_program), of[i].runtime);
}

/* A model with one stack: addresses 1 to @n, innermost first. */
static void make_model(struct model *m, const char *const *function, uint32_t n)
{
	static const struct history_progress none = {0};
	struct mp_module program = {.end = 4096, .path = strdup("/program")};
	struct mp_err err = {0};

	assert_int_equal(model_begin(m, "x", &none, &err), 0);
	m->stacks.at[0] = (struct model_stack){.n = n};
	assert_int_equal(vec_push(&m->facts.modules, program), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct mp_symbol s = {.function = function[i], .raw_function = "_Z"};

		assert_int_equal(vec_push(&m->stacks.pc, i + 1), 0);
		assert_int_equal(names_add(m->naming.names, i + 1, &s, 1), 0);
	}
	m->facts.has_finish = true;
}

static const char *const deep[] = {"operator new(unsigned long)",
				   "std::vector<int>::reserve(int)",
				   "std::vector<int>::push_back(int)",
				   "work(int)",
				   "std::function<void ()>::operator()() const",
				   "main"};

static void test_fold(void **state)
{
	struct shown_stack s;
	char runtimes[SHOWN_RUNTIMES];
	struct model m;

	(void)state;
	make_model(&m, deep, N(deep));
	assert_int_equal(shown_stack(&m, 0, &s), 0);
	assert_int_equal(s.n, 4);
	assert_string_equal(s.at[0].at.function, "std::vector<...>::push_back");
	assert_int_equal(s.at[0].frames, 3);
	assert_string_equal(shown_runtimes(s.at[0].runtimes, runtimes), "libstdc++");
	assert_int_equal(s.site, 1);
	assert_string_equal(s.at[1].at.function, "work");
	assert_string_equal(s.at[1].full, "work(int)");
	assert_int_equal(s.at[2].frames, 1);
	assert_int_equal(shown_first(&m, &s), 1);
	assert_int_equal(shown_count(&s, 0, s.n), N(deep));
	assert_int_equal(shown_every(&m, 0, &s), 0);
	assert_int_equal(s.n, N(deep));
	assert_int_equal(s.site, 3);
	model_free(&m);
}

static void test_full(void **state)
{
	struct shown_stack s;
	struct model m;

	(void)state;
	make_model(&m, deep, N(deep));
	m.shown.full = true;
	assert_int_equal(shown_stack(&m, 0, &s), 0);
	assert_int_equal(s.n, N(deep));
	for (uint32_t i = 0; i < s.n; i++)
		assert_string_equal(s.at[i].at.function, deep[i]);
	assert_int_equal(s.site, 3);
	assert_int_equal(shown_first(&m, &s), 0);
	model_free(&m);
}

/* Without a frame of the user's own code, nothing would be left to look at. */
static void test_no_site(void **state)
{
	struct shown_stack s;
	struct model m;

	(void)state;
	make_model(&m, deep, 3);
	assert_int_equal(shown_stack(&m, 0, &s), 0);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.site, 3);
	assert_int_equal(shown_first(&m, &s), 0);
	assert_int_equal(shown_stack(&m, 7, &s), 0);
	assert_int_equal(s.n, 3); /* an unknown stack is stack 0 */
	model_free(&m);
}

/* The same for frames that are in no model. */
static void test_list(void **state)
{
	struct shown_list list = {0};
	struct shown_stack s;

	(void)state;
	for (size_t i = 0; i < N(deep); i++) {
		struct frame f = {.function = deep[i], .raw_function = "_Z"};

		assert_int_equal(shown_list_add(&list, &f, false, false), 0);
	}
	s = shown_list_every(&list);
	assert_int_equal(s.n, N(deep));
	assert_int_equal(s.site, 3);
	s = shown_list_fold(&list);
	assert_int_equal(s.n, 4);
	assert_string_equal(s.at[0].at.function, "std::vector<...>::push_back");
	assert_int_equal(s.at[0].frames, 3);
	assert_int_equal(s.site, 1);
	assert_int_equal(shown_count(&s, 0, s.n), N(deep));
	shown_list_free(&list);
	s = shown_list_fold(&list);
	assert_int_equal(s.n, 0);
}

static void add(struct shown_list *list, const char *function, const char *library)
{
	struct frame f = {.function = function, .raw_function = "_Z", .library = library};

	assert_int_equal(shown_list_add(list, &f, false, true), 0);
}

/* The frames of an engine are the runtime's if they have a function of a script to lead to. */
static void test_engine(void **state)
{
	char runtimes[SHOWN_RUNTIMES];
	struct shown_list list = {0};
	struct shown_stack s;

	(void)state;
	add(&list, "malloc", "libc.so.6");
	add(&list, "v8::allocate(int)", "node");
	add(&list, "node::buffer(int)", "node");
	s = shown_list_fold(&list);
	assert_int_equal(s.site, 1);
	assert_string_equal(s.at[1].at.function, "v8::allocate");
	shown_list_free(&list);

	add(&list, "malloc", "libc.so.6");
	add(&list, "v8::allocate(int)", "node");
	add(&list, "node::buffer(int)", "node");
	add(&list, "Builtin:CallApi", LIBRARY_JIT);
	s = shown_list_every(&list);
	assert_int_equal(s.site, 1);
	shown_list_free(&list);

	add(&list, "malloc", "libc.so.6");
	add(&list, "operator new(unsigned long)", "libstdc++.so.6");
	add(&list, "v8::allocate(int)", "node");
	add(&list, "node::buffer(int)", "node");
	add(&list, "<Array<int>>.map", LIBRARY_JIT);
	add(&list, "node::Start(int)", "node");
	s = shown_list_fold(&list);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.site, 1);
	assert_string_equal(s.at[0].at.function, "node::buffer");
	assert_string_equal(shown_runtimes(s.at[0].runtimes, runtimes),
			    "node, V8, libstdc++ and libc");
	assert_string_equal(s.at[1].at.function, "<Array<int>>.map");
	shown_list_free(&list);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_short),   cmocka_unit_test(test_without_arguments),
	    cmocka_unit_test(test_scope),   cmocka_unit_test(test_odd_names),
	    cmocka_unit_test(test_runtime), cmocka_unit_test(test_fold),
	    cmocka_unit_test(test_full),    cmocka_unit_test(test_no_site),
	    cmocka_unit_test(test_list),    cmocka_unit_test(test_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
