/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of types without what the standard library adds to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "leaks/types/cxx_type.h"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
#define STRING_LIBCXX                                                                              \
	"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >"

static void shortened(void **state)
{
	static const char *const of[][2] = {
	    {"session", "session"},
	    {"app::pool<3, int>", "app::pool<3, int>"},
	    {STRING, "std::string"},
	    {STRING_LIBCXX, "std::string"},
	    {"std::vector<" STRING ", std::allocator<" STRING " > >", "std::vector<std::string>"},
	    {"std::map<int, session, std::less<int>, std::allocator<std::pair<const int, session> "
	     "> >",
	     "std::map<int, session>"},
	    {"std::map<int, a, std::greater<int>, std::allocator<std::pair<const int, a> > >",
	     "std::map<int, a, std::greater<int>>"},
	    {"std::map<int, a, std::less<void>, std::allocator<std::pair<const int, a> > >",
	     "std::map<int, a, std::less<void>>"},
	    {"std::unordered_map<" STRING ", int, std::hash<" STRING " >, std::equal_to<" STRING
	     " >, std::allocator<std::pair<const " STRING ", int> > >",
	     "std::unordered_map<std::string, int>"},
	    {"std::unique_ptr<char[], std::default_delete<char[]> >", "std::unique_ptr<char[]>"},
	    {"std::unique_ptr<a [], std::default_delete<a []> >", "std::unique_ptr<a[]>"},
	    {"std::function<void (int, char)>", "std::function<void (int, char)>"},
	    {"a<b<c> >", "a<b<c>>"},
	    /* Not a type at all. */
	    {">>,<", ">>,<>"},
	    {"", ""},
	    {"a<b", "a<b>"},
	};
	char out[CXX_TYPE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		cxx_type_shorten(of[i][0], out);
		assert_string_equal(out, of[i][1]);
	}
}

/* Names that are too long, or nested too deeply, are cut. */
static void bounded(void **state)
{
	char name[4096], out[CXX_TYPE_MAX];

	(void)state;
	memset(name, '<', sizeof(name));
	name[sizeof(name) - 1] = 0;
	cxx_type_shorten(name, out);
	for (size_t i = 0; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "a<", 2);
	cxx_type_shorten(name, out);
	memset(name, 'x', sizeof(name) - 1);
	cxx_type_shorten(name, out);
	assert_int_equal(strlen(out), CXX_TYPE_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shortened),
	    cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
