/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/kernel/observe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/procfs.h"
#include "inject/block/dumped.h"
#include "lib/deadline.h"
#include "lib/thread.h"
#include "lib/vec.h"
#include "record/clock.h"
#include "record/kernel/probes.h"
#include "record/stacks/stacks.h"
#include "record/wire_put.h"

#define STACK_BYTES (16u << 10)
#define WAIT_MS	    10
#define NICE	    -10

/* A hooked call that has not returned.  Calls inside it are made by the allocator itself and
 * ignored. */
struct call {
	bool open;
	uint16_t hook;
	uint64_t sp, time, arg[ARCH_ARGS];
	uint32_t stack; /* id in the session's arena */
};

struct watched {
	uint32_t tid;
	struct call call;
	struct wire wire;
};

struct observer {
	struct observer_config config;
	const struct arch *arch;
	struct probes *probes;
	pthread_t thread;
	pthread_mutex_t lock; /* protects probes, used by the thread and observer_add() */
	bool stop;
	uint32_t stack_bytes;
	uint32_t hooks; /* number of hooks in the session's journal that were processed */
	char left_out[256];
	uint32_t page_bytes; /* size of the smallest page */
	struct clock clock;
	uint64_t anchor_ns, anchor_ticks, last_ticks;
	VEC(struct watched) threads; /* [slot] */
	struct stacks stacks;
	VEC(uint32_t) word_of; /* stack id here -> index of words in the arena */
	uint64_t arena_used;
};

/* -------------------------------------------------------------------------------- time -- */

static void set_anchor(struct observer *o)
{
	clock_adjust(&o->clock, o->last_ticks);
	o->anchor_ns = mono_ns();
	o->anchor_ticks = clock_ticks();
}

/* The result never decreases, although the anchor changes between rounds. */
static uint64_t ticks_at(struct observer *o, uint64_t ns)
{
	double ago = (double)(int64_t)(o->anchor_ns - ns) / o->clock.ns_per_tick;
	uint64_t ticks = o->anchor_ticks - (uint64_t)(int64_t)ago;

	if (ticks < o->last_ticks)
		ticks = o->last_ticks;
	o->last_ticks = ticks;
	return ticks;
}

/* -------------------------------------------------------------------------------- stacks -- */

static uint32_t put_stack(struct observer *o, const uint64_t *pc, uint32_t n, uint32_t flags)
{
	const struct ss_control *c = &o->config.session->layout;
	struct ss_stack *s;
	bool fresh;
	uint32_t id = stacks_intern(&o->stacks, pc, n, flags, &fresh);

	if (!id || !fresh)
		return id ? o->word_of.at[id - 1] : MPR_STACK_NONE;
	if (o->arena_used + 1 + n > c->arena_words) {
		o->config.session->block->stacks_full++;
		return vec_push(&o->word_of, MPR_STACK_NONE), MPR_STACK_NONE;
	}
	s = (struct ss_stack *)((char *)o->config.session->block + c->arena + 8 * o->arena_used);
	s->n = n;
	s->flags = flags;
	memcpy(s->pc, pc, n * sizeof(*pc));
	if (vec_push(&o->word_of, (uint32_t)o->arena_used))
		return MPR_STACK_NONE;
	o->arena_used += 1 + n;
	return o->word_of.at[id - 1];
}

static uint32_t stack_of(struct observer *o, const struct probe_sample *s)
{
	const struct session *ss = o->config.session;
	struct dumped d = {
	    .arch = o->arch, .valid = s->valid, .stack = s->stack, .stack_bytes = s->stack_bytes};
	uint64_t pc[SS_MAX_FRAMES];
	uint32_t n, flags;
	bool unknown;

	d.interrupted = s->kind == PROBE_FAULT;
	memcpy(d.regs, s->regs, sizeof(d.regs));
	n = dumped_unwind(ss->block, ss->length, &d, pc, SS_MAX_FRAMES, &flags, &unknown);
	if (unknown && o->config.code_changed(o->config.ctx))
		n = dumped_unwind(ss->block, ss->length, &d, pc, SS_MAX_FRAMES, &flags, &unknown);
	return put_stack(o, pc, n, flags);
}

/* -------------------------------------------------------------------------------- threads -- */

static struct watched *thread_of(struct observer *o, uint32_t tid, uint64_t time)
{
	const struct session *ss = o->config.session;
	struct watched *w = NULL, fresh = {.tid = tid};

	vec_for_each (&o->threads, t) {
		if (t->tid == tid)
			return t;
		if (!t->tid && !w)
			w = t;
	}
	if (!w) {
		if (o->threads.n == ss->layout.nslots || vec_push(&o->threads, fresh)) {
			ss->block->lost_no_slot++;
			return NULL;
		}
		w = &o->threads.at[o->threads.n - 1];
		w->wire = wire_open(ss->block, &ss->layout, (uint32_t)(o->threads.n - 1));
	}
	w->tid = tid;
	w->call.open = false;
	wire_thread(&w->wire, time, tid);
	return w;
}

/* -------------------------------------------------------------------------------- calls -- */

static uint64_t named(uint64_t addr, uint64_t hook)
{
	return (addr & MPR_ADDR_MASK) | hook;
}

static uint64_t requested(const struct planned_hook *h, const uint64_t *arg)
{
	switch (h->size_kind) {
	case SS_SIZE_ARG1:
		return arg[1];
	case SS_SIZE_ARG2:
		return arg[2];
	case SS_SIZE_ARG0_X_ARG1:
		return arg[0] * arg[1];
	case SS_SIZE_ARG1_X_ARG2:
		return arg[1] * arg[2];
	default:
		return arg[0];
	}
}

/*
 * Return: whether the sample is inside the open call, that is, its stack pointer is lower.  At the
 * same stack pointer, a different function was reached by a jump from the first one.  The same
 * function means that the return was lost or skipped by longjmp.
 */
static bool is_nested(struct watched *w, const struct probe_sample *s, uint64_t sp)
{
	if (!w->call.open)
		return false;
	if (sp < w->call.sp || (sp == w->call.sp && s->hook != w->call.hook))
		return true;
	w->call.open = false;
	wire_lost(&w->wire, MPR_LOST_ALLOC, 1);
	return false;
}

static void begin_call(struct watched *w, const struct planned_hook *h, uint64_t hook)
{
	struct call *c = &w->call;

	switch (h->kind) {
	case SS_HOOK_REALLOC:
		if (c->arg[0])
			wire_free(&w->wire, MPR_REALLOC_BEGIN, 0, c->time, named(c->arg[0], hook));
		break;
	case SS_HOOK_MUNMAP:
		wire_map(&w->wire, MPR_UNMAP, c->time, named(c->arg[0], hook),
			 &(struct wire_range){.length = c->arg[1], .stack = c->stack});
		break;
	case SS_HOOK_MREMAP:
		wire_map(&w->wire, MPR_REMAP_BEGIN, c->time, named(c->arg[0], hook),
			 &(struct wire_range){.length = c->arg[1], .stack = c->stack});
		break;
	default:
		break;
	}
}

/* Return: MPR_F_OWN_FREE if the caller is inside the allocator. */
static uint16_t free_misc(const struct observer *o, const struct planned_hook *h,
			  const struct probe_sample *s)
{
	uint64_t from = s->regs[UW_REG_LR];

	if (o->arch->unwind.call_push && s->stack_bytes < o->arch->word_size)
		return 0;
	if (o->arch->unwind.call_push)
		from = arch_word(o->arch, s->stack);
	return from >= h->own_start && from < h->own_end ? MPR_F_OWN_FREE : 0;
}

/* Arguments after those in registers are on the stack, the first one at the lowest address. */
static void take_args(const struct observer *o, uint64_t arg[ARCH_ARGS],
		      const struct probe_sample *s)
{
	uint32_t at = o->arch->unwind.call_push;

	for (int i = 0; i < ARCH_ARGS; i++) {
		arg[i] = s->arg[i];
		if (o->arch->perf.arg[i] != ARCH_ARG_ON_STACK)
			continue;
		if (at + o->arch->word_size <= s->stack_bytes)
			arg[i] = arch_word(o->arch, s->stack + at);
		at += o->arch->word_size;
	}
}

static void on_entry(struct observer *o, struct watched *w, const struct probe_sample *s)
{
	const struct planned_hook *h = &o->config.session->plan.hooks.at[s->hook];
	uint64_t sp = s->regs[UW_REG_SP], hook = (uint64_t)s->hook << MPR_ADDR_BITS;

	if (is_nested(w, s, sp))
		return;
	w->call = (struct call){.hook = s->hook, .sp = sp, .time = ticks_at(o, s->time_ns)};
	take_args(o, w->call.arg, s);
	if (h->kind == SS_HOOK_FREE) {
		if (w->call.arg[0])
			wire_free(&w->wire, MPR_FREE, free_misc(o, h, s), w->call.time,
				  named(w->call.arg[0], hook));
		return;
	}
	w->call.open = true;
	w->call.stack = stack_of(o, s);
	begin_call(w, h, hook);
}

/* Return: the pointer that posix_memalign stored at @at.  Usually @at is in the caller's frame,
 * which the sample contains; otherwise it is read from the target's memory now, slightly late. */
static uint64_t stored(struct observer *o, const struct probe_sample *s, uint64_t at)
{
	uint64_t sp = s->regs[UW_REG_SP], value = 0;
	uint32_t word = o->arch->word_size;

	if (at >= sp && s->stack_bytes >= word && at - sp <= s->stack_bytes - word)
		return arch_word(o->arch, s->stack + (at - sp));
	if (mem_read(&o->config.session->t->mem, at, &value, word))
		return 0;
	return arch_word(o->arch, &value);
}

/* MAP_FAILED, -1 */
static bool failed(const struct observer *o, uint64_t result)
{
	return o->arch->word_size == 4 ? (uint32_t)result == UINT32_MAX : result == UINT64_MAX;
}

static void end_map(const struct observer *o, struct watched *w, const struct planned_hook *h,
		    uint64_t result, uint64_t time, uint64_t hook)
{
	const struct call *c = &w->call;
	struct wire_range r = {.length = c->arg[1], .stack = c->stack};

	switch (h->kind) {
	case SS_HOOK_MMAP:
		r.prot = (uint32_t)c->arg[2];
		r.flags = (uint32_t)c->arg[3];
		r.fd = (int32_t)c->arg[4];
		r.old_addr = c->arg[0];
		if (!failed(o, result))
			wire_map(&w->wire, MPR_MAP, time, named(result, hook), &r);
		break;
	case SS_HOOK_MUNMAP:
		if (result)
			wire_map(&w->wire, MPR_UNMAP_FAILED, time, named(c->arg[0], hook), &r);
		break;
	default: /* SS_HOOK_MREMAP */
		r.length = c->arg[2];
		r.old_addr = c->arg[0];
		wire_map(&w->wire, MPR_REMAP_END, time, named(failed(o, result) ? 0 : result, hook),
			 &r);
	}
}

static void end_call(struct observer *o, struct watched *w, const struct probe_sample *s)
{
	const struct planned_hook *h = &o->config.session->plan.hooks.at[s->hook];
	uint64_t result = s->result, time = ticks_at(o, s->time_ns);
	uint64_t hook = (uint64_t)s->hook << MPR_ADDR_BITS, size;
	const struct call *c = &w->call;

	size = requested(h, c->arg);
	switch (h->kind) {
	case SS_HOOK_POSIX_MEMALIGN:
		result = (int32_t)result ? 0 : stored(o, s, c->arg[0]);
		/* Fallthrough */
	case SS_HOOK_ALLOC:
		if (result)
			wire_alloc(&w->wire, time, named(result, hook), size, c->stack);
		break;
	case SS_HOOK_REALLOC:
		if (c->arg[0])
			wire_realloc_end(&w->wire, time, c->arg[0], named(result, hook), size,
					 c->stack, !result && !size);
		else if (result)
			wire_alloc(&w->wire, time, named(result, hook), size, c->stack);
		break;
	case SS_HOOK_MALLOPT:
		wire_mallopt(&w->wire, time, (int32_t)c->arg[0], (int32_t)c->arg[1],
			     (int32_t)result, c->stack);
		break;
	default:
		end_map(o, w, h, result, time, hook);
	}
}

static void on_return(struct observer *o, struct watched *w, const struct probe_sample *s)
{
	if (!w->call.open || w->call.hook != s->hook ||
	    s->regs[UW_REG_SP] < w->call.sp + o->arch->unwind.call_push)
		return;
	end_call(o, w, s);
	w->call.open = false;
}

/* A page size below the smallest page means unknown: kernels of some architectures do not report
 * it. */
static void on_fault(struct observer *o, struct watched *w, const struct probe_sample *s)
{
	bool told = s->page_bytes >= o->page_bytes && s->page_bytes <= UINT32_MAX;

	wire_fault(&w->wire,
		   (uint16_t)((s->is_major ? MPR_F_MAJOR : 0) | (told ? 0 : MPR_F_NO_SIZE)),
		   ticks_at(o, s->time_ns), s->addr, told ? (uint32_t)s->page_bytes : o->page_bytes,
		   stack_of(o, s));
}

static void take_sample(void *ctx, const struct probe_sample *s)
{
	struct observer *o = ctx;
	struct watched *w;

	if (s->kind == PROBE_LOST) {
		/* The kernel does not report the thread or the kind. */
		if (o->threads.n)
			wire_lost(&o->threads.at[0].wire, MPR_LOST_OTHER, s->lost);
		return;
	}
	if (s->kind == PROBE_THREAD_EXIT) {
		vec_for_each (&o->threads, t) {
			if (t->tid == s->tid)
				t->tid = 0;
		}
		return;
	}
	w = thread_of(o, s->tid, ticks_at(o, s->time_ns));
	if (!w)
		return;
	if (s->kind == PROBE_FAULT)
		on_fault(o, w, s);
	else if (s->kind == PROBE_ENTRY)
		on_entry(o, w, s);
	else
		on_return(o, w, s);
}

/* -------------------------------------------------------------------------------- thread -- */

static void round_of(struct observer *o, bool last)
{
	uint64_t until;

	set_anchor(o);
	pthread_mutex_lock(&o->lock);
	until = probes_drain(o->probes, take_sample, o, last);
	pthread_mutex_unlock(&o->lock);
	if (!last)
		__atomic_store_n(o->config.complete_until, ticks_at(o, until), __ATOMIC_RELEASE);
}

static void *observer_run(void *arg)
{
	struct observer *o = arg;

	/* Best effort: the kernel drops samples if the rings are not drained in time. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	while (!__atomic_load_n(&o->stop, __ATOMIC_ACQUIRE)) {
		round_of(o, false);
		probes_wait(o->probes, WAIT_MS);
	}
	return NULL;
}

/* -------------------------------------------------------------------------------- life -- */

static bool is_observed(const struct planned_hook *h)
{
	return h->kind != SS_HOOK_ALLOC_THROW && h->kind != SS_HOOK_XALLOCX &&
	       h->kind != SS_HOOK_SHMAT && h->kind != SS_HOOK_SHMDT;
}

static void leave_out(struct observer *o, const struct planned_hook *h)
{
	size_t n = strlen(o->left_out);

	snprintf(o->left_out + n, sizeof(o->left_out) - n, "%s%s of %s", n ? ", " : "", h->name,
		 h->module);
}

/* Opens the file that contains a hook.  @path: set to a name by which the kernel can open it for
 * memprof.  Return: a descriptor or a negative errno. */
static int open_file(const struct observer *o, const struct maps *maps,
		     const struct planned_hook *h, char path[64])
{
	const struct map *m = maps_find(maps, h->addr);
	int fd = m ? map_open(o->config.session->t->pid, m) : -ENOENT;

	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* The kernel always inserts the ARM breakpoint instruction, even into Thumb code
 * (arch/arm/probes/uprobes/core.c: "Thumb not yet support"), which would crash the process. */
static int refuse_code(const struct planned_hook *h, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_KERNEL, -EOPNOTSUPP,
		       "%s of %s is Thumb code, which the kernel's uprobes do not support: "
		       "--via=kernel cannot be used here (--event=page-faults can)",
		       h->name, h->module);
}

static int add_hook(struct observer *o, const struct maps *maps, uint32_t i, struct mp_err *err)
{
	const struct planned_hook *h = &o->config.session->plan.hooks.at[i];
	bool returns = h->kind != SS_HOOK_FREE;
	struct probe_point point[2];
	char path[64];
	int fd, ret;

	if (h->code_bits)
		return refuse_code(h, err);
	fd = open_file(o, maps, h, path);
	if (fd < 0)
		return mp_fail(err, MP_EXIT_FAILURE, fd, "cannot open the file of %s: %s", h->name,
			       strerror(-fd));
	point[0] = (struct probe_point){.path = path,
					.offset = h->addr - h->map_start + h->map_offset,
					.hook = (uint16_t)i,
					.stack_bytes = returns ? o->stack_bytes : 8};
	point[1] = point[0];
	point[1].at_return = true;
	point[1].stack_bytes = h->kind == SS_HOOK_POSIX_MEMALIGN ? o->stack_bytes : 0;
	ret = probes_add(o->probes, point, returns ? 2 : 1, err);
	close(fd);
	return ret;
}

int observer_add(struct observer *o, struct mp_err *err)
{
	struct session *s = o->config.session;
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps);

	if (ret)
		return target_refused(s->t, ret, err);
	pthread_mutex_lock(&o->lock);
	for (; o->hooks < s->journal->nhooks && !ret; o->hooks++) {
		/* Skipped: a hook that only the agent needs, and a function that calls
		 * aligned_alloc, which has a probe. */
		if (s->plan.hooks.at[o->hooks].kind == SS_HOOK_PRCTL ||
		    s->plan.hooks.at[o->hooks].sibling_addr)
			continue;
		if (is_observed(&s->plan.hooks.at[o->hooks]))
			ret = add_hook(o, &maps, o->hooks, err);
		else
			leave_out(o, &s->plan.hooks.at[o->hooks]);
	}
	pthread_mutex_unlock(&o->lock);
	maps_free(&maps);
	return ret;
}

static void observer_free(struct observer *o)
{
	probes_close(o->probes);
	stacks_free(&o->stacks);
	vec_free(&o->word_of);
	vec_free(&o->threads);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

int observer_start(const struct observer_config *config, struct observer **out, struct mp_err *err)
{
	const struct target *t = config->session->t;
	struct observer *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	o->config = *config;
	o->stack_bytes = (config->stack_bytes ? config->stack_bytes : STACK_BYTES) & ~7u;
	o->arch = t->arch;
	o->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	o->arena_used = 1;
	pthread_mutex_init(&o->lock, NULL);
	clock_start(&o->clock);
	ret = stacks_init(&o->stacks)
		  ? mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory")
		  : probes_open(t->pid, t->arch, config->ring_bytes, &o->probes, err);
	if (!ret)
		ret = config->faults
			  ? probes_add_faults(o->probes, o->stack_bytes, config->user_only, err)
			  : observer_add(o, err);
	if (!ret && thread_start(&o->thread, observer_run, o))
		ret = mp_fail(err, MP_EXIT_FAILURE, -EAGAIN, "cannot start a thread");
	if (ret) {
		observer_free(o);
		return ret;
	}
	*out = o;
	return 0;
}

void observer_stop(struct observer *o)
{
	if (!o)
		return;
	__atomic_store_n(&o->stop, true, __ATOMIC_RELEASE);
	pthread_join(o->thread, NULL);
	round_of(o, true);
	observer_free(o);
}

const char *observer_left_out(const struct observer *o)
{
	return o->left_out;
}
