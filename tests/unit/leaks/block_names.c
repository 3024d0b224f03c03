/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "leaks/types/block_names.h"

#define BLOCKS 3

struct state {
	struct image img;
	struct graph g;
	struct block_names n;
	struct heap_block block[BLOCKS];
};

static int begin(void **p)
{
	static struct state s;

	memset(&s, 0, sizeof(s));
	image_init(&s.img, arch_native(), 0);
	for (uint32_t i = 0; i < BLOCKS; i++)
		s.block[i] = (struct heap_block){0x1000 + 64 * i, i < 2 ? 48 : 40};
	s.g = (struct graph){.arch = s.img.arch, .block = s.block, .n = BLOCKS};
	*p = &s;
	return block_names_init(&s.n, &s.g, &s.img);
}

static int end(void **p)
{
	struct state *s = *p;

	block_names_free(&s->n);
	return 0;
}

static void names_and_kinds(void **p)
{
	struct state *s = *p;
	uint32_t a = block_names_id(&s->n, "session", "/a", NAME_DWARF),
		 b = block_names_id(&s->n, "session", "/b", NAME_DWARF);

	assert_int_not_equal(a, b);
	assert_int_equal(block_names_id(&s->n, "session", "/a", NAME_DWARF), a);
	assert_null(block_names_of(&s->n, 0));
	/* Without a name blocks of one size are of one kind, unless one is text. */
	assert_int_equal(block_names_key(&s->n, 0), block_names_key(&s->n, 1));
	assert_int_not_equal(block_names_key(&s->n, 0), block_names_key(&s->n, 2));
	s->n.of[1] = BLOCK_NAMES_TEXT;
	assert_int_not_equal(block_names_key(&s->n, 0), block_names_key(&s->n, 1));
	/* With one the size is of no concern, and the first name stays. */
	block_names_set(&s->n, 0, a);
	block_names_set(&s->n, 2, a);
	block_names_set(&s->n, 2, b);
	block_names_set(&s->n, 1, b);
	assert_int_equal(block_names_key(&s->n, 0), block_names_key(&s->n, 2));
	assert_int_not_equal(block_names_key(&s->n, 0), block_names_key(&s->n, 1));
	assert_string_equal(block_names_of(&s->n, 2)->owner, "/a");
}

static void more_names_than_ids(void **p)
{
	struct state *s = *p;
	char text[32];

	for (uint32_t i = 1; i < 2 * (BLOCK_NAMES_MOST + 1); i++) {
		snprintf(text, sizeof(text), "type %u", i);
		assert_int_equal(block_names_id(&s->n, text, NULL, NAME_DWARF),
				 i < BLOCK_NAMES_MOST ? i : BLOCK_NAMES_MOST);
	}
	/* Both of a name with an id of its own, and of one without. */
	assert_int_equal(block_names_id(&s->n, "type 7", NULL, NAME_DWARF), 7);
	assert_int_equal(block_names_id(&s->n, "type 70000", NULL, NAME_DWARF), BLOCK_NAMES_MOST);
	assert_int_equal(s->n.list.n, BLOCK_NAMES_MOST);
	block_names_set(&s->n, 0, block_names_id(&s->n, "type 70000", NULL, NAME_DWARF));
	assert_string_equal(block_names_of(&s->n, 0)->text, "(of other types)");
}

static void containers(void **p)
{
	struct state *s = *p;
	uint32_t list = block_names_id(&s->n, "list", NULL, NAME_SHAPE);
	const struct container
	    small = {.name = list, .addr = 0x10, .elements = 3, .bytes = 48},
	    large = {.name = list, .addr = 0x500, .first = 0x1040, .elements = 20, .bytes = 2000},
	    largest = {.name = list, .addr = 0x508, .elements = 90, .bytes = 9000};

	assert_int_equal(block_names_container(&s->n, &small), 0);
	assert_int_equal(block_names_container(&s->n, &large), 0);
	assert_int_equal(block_names_container(&s->n, &largest), 0);
	assert_int_equal(block_names_settle(&s->n), 0);
	/* The sums have all of them, the list only the larger ones. */
	assert_int_equal(s->n.list.at[list - 1].sum.count, 3);
	assert_int_equal(s->n.list.at[list - 1].sum.elements, 113);
	assert_int_equal(s->n.containers.n, 2);
	assert_null(block_names_container_in(&s->n, 0x10, 8));
	assert_null(block_names_container_in(&s->n, 0x4f8, 8));
	assert_int_equal(block_names_container_in(&s->n, 0x500, 8)->elements, 20);
	assert_int_equal(block_names_container_in(&s->n, 0x1000, 0x48)->elements, 20);
	assert_int_equal(block_names_container_in(&s->n, 0x500, 16)->elements, 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(names_and_kinds, begin, end),
	    cmocka_unit_test_setup_teardown(more_names_than_ids, begin, end),
	    cmocka_unit_test_setup_teardown(containers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
