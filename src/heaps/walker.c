/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/walker.h"

#include <errno.h>
#include <string.h>

const struct walker *const walkers[] = {
    &walker_glibc,    &walker_jemalloc, &walker_mimalloc, &walker_musl_ng,
    &walker_musl_old, &walker_python,	&walker_tcmalloc, NULL,
};

static bool tried(const struct walker *w, const struct arch *arch)
{
	size_t n = strlen(arch->name);

	for (const char *p = w->machines; p && (p = strstr(p, arch->name)); p += n) {
		if ((p == w->machines || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	}
	return !w->machines;
}

static bool is_there(const struct walker *w, const struct image *img)
{
	vec_for_each (&img->maps, m) {
		if (m->exec && m->path[0] == '/' && strstr(m->path, w->library))
			return true;
	}
	return false;
}

int walker_run(const struct walker *w, struct image *img, struct heap *heap, struct mp_err *err)
{
	if (tried(w, img->arch))
		return w->walk(img, heap, err);
	if (!is_there(w, img))
		return -ENOENT;
	heap->allocator = w->name;
	return mp_fail(err, MP_EXIT_FAILURE, -ENOTSUP,
		       "the process has %s, whose layout on %s memprof does not know", w->name,
		       img->arch->name);
}
