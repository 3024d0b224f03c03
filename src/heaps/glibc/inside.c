/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds threads that were stopped inside the allocator: blocks can be in their registers and in the
 * frames of its functions.  A single-threaded program takes no lock, so the program counter is
 * used.
 */
#include <errno.h>
#include <string.h>
#include "heaps/glibc/glibc.h"

#define INSN 4 /* bytes of code that syscall.before() examines */

static bool in_module(const struct glibc *g, uint64_t pc)
{
	const struct image_map *m = image_map_at(g->img, pc);

	return m && m->exec && g->module && !strcmp(m->path, g->module);
}

/* Is the thread in a blocking system call?  Those of the allocator are never interrupted. */
static bool waits(struct image *img, const struct arch_regs *regs)
{
	const struct arch *a = img->arch;
	uint8_t code[INSN];

	return a->syscall.state(regs) == ARCH_IN_SYSCALL || a->syscall.result(regs) == -EINTR ||
	       (a->syscall.before &&
		image_read_all(img, a->regs.get_pc(regs), code, sizeof(code)) &&
		a->syscall.before(regs, code, sizeof(code)));
}

bool glibc_thread_inside(struct glibc *g, const struct image_thread *th)
{
	return th->has_regs && in_module(g, g->img->arch->regs.get_pc(&th->regs)) &&
	       !waits(g->img, &th->regs);
}

int glibc_inside_words(struct glibc *g, const struct image_thread *th,
		       int (*take)(void *ctx, uint64_t word), void *ctx)
{
	const uint32_t size = g->l->word;
	uint8_t frames[IMAGE_ALLOCATOR_FRAMES];
	size_t n = image_read(g->img, g->img->arch->regs.get_sp(&th->regs), frames, sizeof(frames));
	int ret = 0;

	for (size_t i = 0; i < th->regs.size / size && !ret; i++)
		ret = take(ctx, glibc_word(g, th->regs.raw, i * size));
	for (size_t i = 0; i < n / size && !ret; i++)
		ret = take(ctx, glibc_word(g, frames, i * size));
	return ret;
}
