/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Has GLib's containers in variables.  Prints for each its elements, the blocks and usable bytes that only
 * implement it, and how many places a hash table has; then "ready".  GLib 2.74 has lists and the structures
 * themselves in slices, unless G_SLICE=always-malloc. */
#include <glib.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ELEMENTS 1000

GHashTable *g_table, *g_names;
GList *g_list;
GSList *g_slist;
GPtrArray *g_array;
static struct {
	GHashTable *inner;
} * holder;

int main(void)
{
	bool slices = !getenv("G_SLICE");
	size_t list = 0, slist = 0;

	g_table = g_hash_table_new(g_direct_hash, g_direct_equal);
	for (int i = 0; i < ELEMENTS; i++)
		g_hash_table_insert(g_table, GINT_TO_POINTER(i * 3 + 1), g_malloc(100));
	for (int i = 0; i < 100; i++)
		g_hash_table_remove(g_table, GINT_TO_POINTER(i * 3 + 1));
	/* A set: keys and values are one array. */
	g_names = g_hash_table_new(g_str_hash, g_str_equal);
	for (int i = 0; i < 3 * ELEMENTS; i++)
		g_hash_table_add(g_names, g_strdup_printf("name %d", i));
	holder = g_malloc0(sizeof(*holder));
	holder->inner = g_hash_table_new(g_direct_hash, g_direct_equal);
	for (int i = 0; i < 50; i++)
		g_hash_table_insert(holder->inner, GINT_TO_POINTER(i + 1), &g_list);
	for (int i = 0; i < ELEMENTS; i++)
		g_list = g_list_prepend(g_list, g_malloc(50));
	for (int i = 0; i < 2 * ELEMENTS; i++)
		g_slist = g_slist_prepend(g_slist, NULL);
	g_array = g_ptr_array_new();
	for (int i = 0; i < 3 * ELEMENTS; i++)
		g_ptr_array_add(g_array, g_malloc(10));
	printf("g_table %d\n", ELEMENTS - 100);
	printf("g_names %d\n", 3 * ELEMENTS);
	for (GList *l = g_list; l; l = l->next)
		list += slices ? sizeof(*l) : malloc_usable_size(l);
	for (GSList *l = g_slist; l; l = l->next)
		slist += slices ? sizeof(*l) : malloc_usable_size(l);
	printf("g_list %d %d %zu\n", ELEMENTS, slices ? 0 : ELEMENTS, list);
	printf("g_slist %d %d %zu\n", 2 * ELEMENTS, slices ? 0 : 2 * ELEMENTS, slist);
	printf("g_array %d %d %zu\n", 3 * ELEMENTS, slices ? 1 : 2,
	       malloc_usable_size(g_array->pdata) + (slices ? 0 : malloc_usable_size(g_array)));
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		pause();
		g_ptr_array_add(g_array, holder);
	}
}
