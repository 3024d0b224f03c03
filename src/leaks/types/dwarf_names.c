/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/dwarf_names.h"

#include <errno.h>
#include <stdlib.h>
#include "leaks/types/dwarf_scan.h"
#include "leaks/types/dwarf_units.h"
#include "leaks/frames.h"
#include "lib/deadline.h"

/* For the debug information, and for the traversal.  Meanwhile the process has a copy, which needs
 * memory, or is stopped. */
#define READ_MS	     5000
#define WALK_MS	     20000
#define READ_HELD_MS 1000
#define WALK_HELD_MS 1000

/* A variable in memory. */
struct place {
	uint64_t addr;
	Dwarf_Die die;
};

struct places {
	VEC(struct place) list;
};

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->die.addr < y->die.addr ? -1 : x->die.addr > y->die.addr;
}

/* Lists the variables, thread-local ones for each thread. */
static int list_places(struct places *p, const struct dwarf_units *u, const struct image *img,
		       struct modules *m)
{
	size_t n;
	const struct dwarf_variable *v = dwarf_units_variables(u, &n);
	VEC(uint64_t) starts = {0};
	int ret = 0;

	vec_for_each (&img->threads, th) {
		const uint64_t start = th->tls ? modules_tls_start(m, th->tls) : 0;

		if (start && vec_push(&starts, start))
			ret = -ENOMEM;
	}
	for (size_t i = 0; i < n && !ret; i++) {
		const struct place fixed = {v[i].addr, v[i].die};

		if (!v[i].tls)
			ret = vec_push(&p->list, fixed);
		/* Where other modules have theirs is not known. */
		for (size_t k = 0; k < starts.n && !ret && v[i].tls && !v[i].module; k++) {
			const struct place of_thread = {starts.at[k] + v[i].addr, v[i].die};

			ret = vec_push(&p->list, of_thread);
		}
	}
	vec_free(&starts);
	vec_sort(&p->list, by_address);
	return ret;
}

static int take_variable(struct dwarf_walk *w, struct place *p)
{
	struct dwarf_type *t = dwarf_type_at(w->types, &p->die);
	uint32_t id;

	dwarf_type_complete(w->types, t);
	if (!t->follow)
		return 0;
	id = t->name[0] ? dwarf_name(w, "", t->name, "", NULL) : 0;
	if (id && block_names_variable(w->names, p->addr, id))
		return -ENOMEM;
	dwarf_scan(w, p->addr, t);
	return 0;
}

/* A frame on a stack. */
struct frame_of {
	struct dwarf_walk *walk;
	const struct stack_frame *frame;
};

/* Return: what the places of the frame's variables are relative to; 0: not known. */
static uint64_t frame_base(const struct frame_of *f, int base)
{
	const struct arch_unwind *u = &f->walk->img->arch->unwind;

	/* The caller's stack pointer is the canonical frame address (DWARF 5, 6.4.1). */
	if (base == SYMFILE_CFA)
		return f->frame->high;
	if (base < 0 || base >= ARCH_DWARF_REGS)
		return 0;
	if (u->column[base] == UW_REG_SP)
		return f->frame->sp;
	return u->column[base] == UW_REG_FP ? f->frame->fp : 0;
}

static int take_local(void *ctx, Dwarf_Die *die, int base, int64_t offset)
{
	const struct frame_of *f = ctx;
	struct dwarf_type *t = dwarf_type_at(f->walk->types, die);
	const uint64_t start = frame_base(f, base), addr = start + (uint64_t)offset;

	/* Only objects have containers in them. */
	if (start && (t->kind == DWARF_STRUCT || t->kind == DWARF_ARRAY) && addr >= f->frame->low &&
	    addr < f->frame->high)
		dwarf_scan_local(f->walk, addr, t);
	return f->walk->late || f->walk->no_memory;
}

/* Takes the containers in local variables. */
static int take_stacks(struct dwarf_walk *w, struct image *img, struct modules *m)
{
	struct frames frames = {0};
	int ret = frames_take(&frames, img, m);

	for (size_t i = 0; i < frames.list.n && !ret && !w->late; i++) {
		struct frame_of f = {w, &frames.list.at[i]};

		(void)modules_locals(m, frames.list.at[i].pc, take_local, &f);
	}
	frames_free(&frames);
	return ret;
}

static int walk_variables(struct block_names *n, const struct graph *g, struct image *img,
			  struct modules *m, struct dwarf_types *types, struct places *places)
{
	struct dwarf_walk w;
	int ret = dwarf_walk_init(&w, n, g, img, types,
				  deadline_in_ms(img->held ? WALK_HELD_MS : WALK_MS));

	for (size_t i = 0; i < places->list.n && !ret; i++) {
		/* Several units can have the same variable. */
		if (!i || places->list.at[i - 1].addr != places->list.at[i].addr)
			ret = take_variable(&w, &places->list.at[i]);
	}
	if (!ret) {
		dwarf_scan_waiting(&w);
		dwarf_scan_classes(&w);
		ret = take_stacks(&w, img, m);
		ret = w.no_memory ? -ENOMEM : ret;
	}
	if (!ret && w.late)
		ret = block_names_note(n, "following the types took too long: the types of the "
					  "remaining blocks are not known");
	if (!ret && w.broken)
		ret = block_names_note(n,
				       "%llu containers contradict themselves (uninitialized, "
				       "destroyed, or being changed): they are not shown",
				       (unsigned long long)w.broken);
	dwarf_walk_free(&w);
	return ret;
}

static int note_left_out(struct block_names *n, const struct dwarf_units *u,
			 const struct dwarf_types *t)
{
	const struct dwarf_left_out *left = dwarf_units_left_out(u);
	int ret = 0;

	if (left->split)
		ret = block_names_note(n,
				       "debug information of %u units is in files that cannot "
				       "be read (.dwo): their types are not known",
				       left->split);
	if (!ret && left->time)
		ret = block_names_note(n, "reading debug information took too long: types of the "
					  "rest are not known");
	if (!ret && (left->number || dwarf_types_cut(t)))
		ret = block_names_note(n, "there is more debug information than is read: types of "
					  "the rest are not known");
	return ret;
}

int dwarf_names_take(struct block_names *n, const struct graph *g, struct image *img,
		     struct modules *m)
{
	struct dwarf_units *units =
	    dwarf_units_new(deadline_in_ms(img->held ? READ_HELD_MS : READ_MS));
	struct dwarf_types *types = units ? dwarf_types_new(img->arch, units) : NULL;
	struct places places = {0};
	struct module_debug debug;
	int ret = types ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < modules_count(m) && !ret; i++) {
		if (modules_debug(m, i, &debug))
			ret = dwarf_units_read(units, &debug, i, modules_path(m, i));
	}
	if (!ret)
		ret = list_places(&places, units, img, m);
	if (!ret)
		ret = walk_variables(n, g, img, m, types, &places);
	if (!ret)
		ret = note_left_out(n, units, types);
	vec_free(&places.list);
	dwarf_types_free(types);
	dwarf_units_free(units);
	return ret;
}
