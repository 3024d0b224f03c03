/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hook bodies, entered from arch/<name>/agent-entry.S with the gate open.
 *
 * Order of records against the real call keeps every address's history right: what gives a block
 * away is recorded before it happens, what brings one is recorded after.  Nothing throws through
 * here, and no call that a signal handler leaves by longjmp does damage: depth and writers are put
 * right when the thread comes again (begin()).
 */
#include "agent/agent.h"

#define barrier() __asm__ volatile("" ::: "memory")

#define RAW_STACK_MAX (32u << 10)
#define SHMID_DS_SIZE 128 /* struct shmid_ds of 64-bit Linux: 112 bytes */
#define SHM_SEGSZ     6	  /* index of shm_segsz in 8-byte words */
#define IPC_STAT      2

uint64_t ag_alloc(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f);
uint64_t ag_alloc_throw(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			const struct ag_frame *f);
uint64_t ag_posix_memalign(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			   const struct ag_frame *f);
uint64_t ag_realloc(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f);
uint64_t ag_xallocx(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f);
uint64_t ag_mmap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		 const struct ag_frame *f);
uint64_t ag_munmap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   const struct ag_frame *f);
uint64_t ag_mremap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   const struct ag_frame *f);
uint64_t ag_shmat(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f);
uint64_t ag_shmdt(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f);
uint64_t ag_mallopt(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f);
bool ag_free(uint64_t block, const struct ss_desc *desc, uint64_t return_address);
void ag_free_nested(uint64_t block, const struct ag_frame *f);

typedef uint64_t original_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef uint64_t original6_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

#define ORIGINAL(f) ((original_fn *)(f)->desc->original_addr)

static inline uint64_t requested(const struct ss_desc *d, uint64_t a0, uint64_t a1, uint64_t a2)
{
	switch (d->size_kind) {
	case SS_SIZE_ARG1:
		return a1;
	case SS_SIZE_ARG2:
		return a2;
	case SS_SIZE_ARG0_X_ARG1:
		return a0 * a1;
	case SS_SIZE_ARG1_X_ARG2:
		return a1 * a2;
	}
	return a0;
}

/*
 * Starts to serve a call.  Return: false when there is nothing to record (no slot, or the
 * allocator's own call and @inner_too is not set).
 */
static bool begin(struct ag_call *call, const struct ag_frame *f, bool inner_too)
{
	struct ag_thread *t;

	call->c = control();
	call->f = f;
	call->inner = false;
	call->t = t = thread_slot(call->c);
	if (unlikely(!t))
		return false;
	call->level = t->s.depth;
	if (unlikely(call->level)) {
		enum ag_nesting nesting;

		if (call->level >= AG_LEVELS)
			return false;
		nesting = stack_nesting(call);
		if (nesting == AG_INNER && !inner_too)
			return false;
		call->inner = nesting == AG_INNER;
		if (nesting == AG_FRESH) {
			call->level = 0;
			t->s.resets++;
			if (t->s.writers)
				ring_reset(call->c, t);
		}
	}
	if (!call->level)
		t->outer_sp = frame_sp(f);
	t->s.depth = call->level + 1;
	barrier();
	return true;
}

static inline void end(const struct ag_call *call)
{
	barrier();
	call->t->s.depth = call->level;
}

/* Is the recorder still there?  Otherwise the call is not recorded, only counted. */
static inline bool fresh(const struct ag_call *call, uint64_t now)
{
	if (likely(now <= call->c->deadline))
		return true;
	call->t->s.stale++;
	return false;
}

static void lost(const struct ag_call *call, enum mpr_lost kind, uint64_t bytes)
{
	call->t->s.lost[kind]++;
	call->t->s.lost_bytes += bytes;
}

/* Registers and stack, for the recorder to unwind. */
static uint32_t put_raw(const struct ag_call *call, uint64_t now)
{
	struct ag_thread *t = call->t;
	struct mpr_raw_stack rec;
	struct uw_state *s = &t->state[call->level][0];
	uint64_t position, sp = frame_sp(call->f);
	uint32_t bytes = (uint32_t)stack_room(call, sp, RAW_STACK_MAX) & ~7u;

	frame_state(call->f, call->f->desc->function_addr, s);
	rec.h = (struct mpr_header){MPR_RAW_STACK, 0, (uint16_t)(sizeof(rec) + bytes)};
	rec.time = now;
	rec.sequence = ++t->s.raw_sequence & ~MPR_STACK_RAW;
	rec.bytes = bytes;
	rec.reg_valid = s->valid;
	for (uint32_t i = 0; i < MPR_RAW_REGS; i++)
		rec.regs[i] = s->valid >> i & 1 ? s->reg[i] : 0;
	if (!ring_reserve(call->c, t, rec.h.size, false, &position))
		return MPR_STACK_NONE;
	ring_write(call->c, t, position, (uint64_t *)&rec, sizeof(rec) / 8);
	ring_write(call->c, t, position + sizeof(rec), (const uint64_t *)sp, bytes / 8);
	ring_commit(call->c, t, position, rec.h.size);
	return rec.sequence | MPR_STACK_RAW;
}

static inline uint32_t take_stack(const struct ag_call *call, uint64_t now)
{
	bool raw_wanted;
	uint32_t id = stack_take(call, &raw_wanted);

	if (unlikely(raw_wanted))
		id = put_raw(call, now);
	return id;
}

/* What glibc's chunk header says of a block that was just returned: usable size and arena. */
static inline uint16_t block_misc(const struct ss_desc *d, uint64_t block, uint64_t size)
{
	uint64_t head, slack;
	uint16_t misc = 0;

	if (!d->glibc_chunks)
		return MPR_SLACK_UNKNOWN << MPR_SLACK_SHIFT;
	head = *(const uint64_t *)(block - 8);
	if (unlikely(head & 2))
		misc = MPR_F_MMAPPED;
	else if (head & 4)
		misc = MPR_F_NON_MAIN;
	slack = (head & ~7ull) - (head & 2 ? 16 : 8) - size;
	if (unlikely(slack >= MPR_SLACK_UNKNOWN))
		slack = MPR_SLACK_UNKNOWN;
	return (uint16_t)(misc | slack << MPR_SLACK_SHIFT);
}

static inline uint64_t addr_hook(const struct ss_desc *d, uint64_t addr)
{
	return (addr & MPR_ADDR_MASK) | (uint64_t)d->hook << MPR_ADDR_BITS;
}

static void put_alloc(const struct ag_call *call, uint64_t block, uint64_t size)
{
	const struct ss_desc *d = call->f->desc;
	uint64_t now = ticks();
	uint16_t misc;
	uint32_t stack;
	bool done;

	if (!fresh(call, now))
		return;
	stack = take_stack(call, now);
	misc = block_misc(d, block, size);
	if (likely(size >> 32 == 0)) {
		struct mpr_alloc rec = {{MPR_ALLOC, misc, sizeof(rec)},
					now,
					addr_hook(d, block),
					(uint32_t)size,
					stack};

		done = ring_put(call->c, call->t, &rec.h, false);
	} else {
		struct mpr_alloc_big rec = {
		    {MPR_ALLOC_BIG, misc, sizeof(rec)}, now, addr_hook(d, block), size, stack, 0};

		done = ring_put(call->c, call->t, &rec.h, false);
	}
	if (unlikely(!done))
		lost(call, MPR_LOST_ALLOC, size);
}

uint64_t ag_alloc(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t block;

	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	block = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (likely(block))
		put_alloc(&call, block, requested(f->desc, a0, a1, a2));
	end(&call);
	return block;
}

/* Return: the block, or 0: the original has to be entered, with no frame of ours. */
uint64_t ag_alloc_throw(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t block;

	if (unlikely(!begin(&call, f, false)))
		return 0;
	/* The nothrow_t reference of the sibling is never looked at. */
	block = ((original_fn *)f->desc->sibling_addr)(a0, a1, a2, a3, a4);
	if (likely(block))
		put_alloc(&call, block, requested(f->desc, a0, a1, a2));
	else
		__atomic_fetch_add(&call.c->missed_new, 1, __ATOMIC_RELAXED);
	end(&call);
	return block;
}

uint64_t ag_posix_memalign(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			   const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t ret;

	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if ((int)ret == 0 && *(const uint64_t *)a0)
		put_alloc(&call, *(const uint64_t *)a0, a2);
	end(&call);
	return ret;
}

static bool put_free(struct ss_control *c, struct ag_thread *t, enum mpr_type type, uint64_t now,
		     const struct ss_desc *d, uint64_t block, uint16_t misc)
{
	struct mpr_free rec = {{type, misc, sizeof(rec)}, now, addr_hook(d, block)};

	return ring_put(c, t, &rec.h, true);
}

/* glibc frees what lies in a thread's cache once more when the thread ends: who called, tells. */
static inline uint16_t free_misc(const struct ss_desc *d, uint64_t return_address)
{
	return return_address - d->text_addr < d->text_length ? MPR_F_FROM_MODULE : 0;
}

bool ag_free(uint64_t block, const struct ss_desc *d, uint64_t return_address)
{
	struct ss_control *c = control();
	struct ag_thread *t;
	uint64_t now;

	if (!block)
		return false;
	t = thread_slot(c);
	if (unlikely(!t))
		return false;
	if (unlikely(t->s.depth))
		return true;
	t->s.depth = 1;
	t->outer_sp = (uint64_t)__builtin_frame_address(0);
	barrier();
	now = ticks();
	if (unlikely(now > c->deadline))
		t->s.stale++;
	else if (unlikely(!put_free(c, t, MPR_FREE, now, d, block, free_misc(d, return_address))))
		t->s.lost[MPR_LOST_FREE]++;
	barrier();
	t->s.depth = 0;
	return false;
}

void ag_free_nested(uint64_t block, const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t now;

	if (!begin(&call, f, false))
		return;
	now = ticks();
	if (fresh(&call, now) && !put_free(call.c, call.t, MPR_FREE, now, f->desc, block,
					   free_misc(f->desc, f->return_address)))
		lost(&call, MPR_LOST_FREE, 0);
	end(&call);
}

/* The new block, or 0; whoever wrote REALLOC_BEGIN has to write this. */
static void put_realloc_end(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			    bool released)
{
	const struct ss_desc *d = call->f->desc;
	uint64_t now = ticks();
	struct mpr_realloc rec = {{MPR_REALLOC_END, 0, sizeof(rec)},
				  now,
				  old & MPR_ADDR_MASK,
				  addr_hook(d, block),
				  size,
				  MPR_STACK_NONE,
				  released};

	if (block) {
		rec.stack = take_stack(call, now);
		rec.h.misc = block_misc(d, block, size);
	}
	if (!ring_put(call->c, call->t, &rec.h, true))
		lost(call, MPR_LOST_REALLOC, size);
}

static bool put_realloc_begin(const struct ag_call *call, uint64_t old)
{
	uint64_t now = ticks();

	if (!fresh(call, now))
		return false;
	if (put_free(call->c, call->t, MPR_REALLOC_BEGIN, now, call->f->desc, old, 0))
		return true;
	lost(call, MPR_LOST_REALLOC, 0);
	return false;
}

uint64_t ag_realloc(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f)
{
	uint64_t size = requested(f->desc, a0, a1, a2), block;
	struct ag_call call;
	bool begun;

	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (!a0) {
		block = ORIGINAL(f)(a0, a1, a2, a3, a4);
		if (block)
			put_alloc(&call, block, size);
	} else {
		begun = put_realloc_begin(&call, a0);
		block = ORIGINAL(f)(a0, a1, a2, a3, a4);
		if (begun)
			put_realloc_end(&call, a0, block, size, !block && !size);
	}
	end(&call);
	return block;
}

/* Never moves; returns the real size, which may be the old one. */
uint64_t ag_xallocx(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t size;

	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	size = ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Only a size that was granted is a change; the block is ours all the time. */
	if (size >= a1 && put_realloc_begin(&call, a0))
		put_realloc_end(&call, a0, a0, a1, false);
	end(&call);
	return size;
}

static bool put_map(const struct ag_call *call, enum mpr_type type, uint64_t addr, uint64_t length,
		    uint64_t old_addr, uint32_t prot, uint32_t flags, int32_t fd, bool with_stack)
{
	uint64_t now = ticks();
	struct mpr_map rec = {{type, call->inner ? MPR_F_INNER : 0, sizeof(rec)},
			      now,
			      addr_hook(call->f->desc, addr),
			      length,
			      old_addr,
			      prot,
			      flags,
			      fd,
			      MPR_STACK_NONE};

	if (!fresh(call, now))
		return false;
	if (with_stack)
		rec.stack = take_stack(call, now);
	if (ring_put(call->c, call->t, &rec.h, true))
		return true;
	lost(call, MPR_LOST_MAP, 0);
	return false;
}

static inline bool failed(uint64_t ret)
{
	return ret == UINT64_MAX;
}

static inline void count_unmap(const struct ag_call *call)
{
	__atomic_fetch_add(&call->c->unmaps, 1, __ATOMIC_RELAXED);
}

uint64_t ag_mmap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		 const struct ag_frame *f)
{
	original6_fn *original = (original6_fn *)f->desc->original_addr;
	uint64_t offset = ((const uint64_t *)f)[-1], addr;
	struct ag_call call;

	if (unlikely(!begin(&call, f, true)))
		return original(a0, a1, a2, a3, a4, offset);
	addr = original(a0, a1, a2, a3, a4, offset);
	if (!failed(addr))
		put_map(&call, MPR_MAP, addr, a1, a0, (uint32_t)a2, (uint32_t)a3, (int32_t)a4,
			true);
	end(&call);
	return addr;
}

uint64_t ag_munmap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t ret;
	bool put;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	put = put_map(&call, MPR_UNMAP, a0, a1, 0, 0, 0, -1, true);
	count_unmap(&call);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put && (int)ret != 0)
		put_map(&call, MPR_UNMAP_FAILED, a0, a1, 0, 0, 0, -1, false);
	end(&call);
	return ret;
}

uint64_t ag_mremap(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t addr;
	bool put;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	put = put_map(&call, MPR_REMAP_BEGIN, a0, a1, 0, 0, 0, -1, false);
	count_unmap(&call);
	addr = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put)
		put_map(&call, MPR_REMAP_END, failed(addr) ? 0 : addr, a2, a0, 0, (uint32_t)a3, -1,
			true);
	end(&call);
	return addr;
}

static uint64_t shm_size(const struct ag_call *call, int32_t id)
{
	uint64_t ds[SHMID_DS_SIZE / 8];

	if (!call->c->may_syscall || raw_syscall(AG_NR_SHMCTL, id, IPC_STAT, (long)ds, 0, 0, 0) < 0)
		return 0;
	return ds[SHM_SEGSZ];
}

uint64_t ag_shmat(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t addr;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	addr = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (!failed(addr))
		put_map(&call, MPR_MAP, addr, shm_size(&call, (int32_t)a0), a1, 0, (uint32_t)a2,
			(int32_t)a0, true);
	end(&call);
	return addr;
}

uint64_t ag_shmdt(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t ret;
	bool put;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Length 0: the whole segment that was mapped there. */
	put = put_map(&call, MPR_UNMAP, a0, 0, 0, 0, 0, -1, true);
	count_unmap(&call);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put && (int)ret != 0)
		put_map(&call, MPR_UNMAP_FAILED, a0, 0, 0, 0, 0, -1, false);
	end(&call);
	return ret;
}

uint64_t ag_mallopt(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		    const struct ag_frame *f)
{
	struct ag_call call;
	uint64_t ret;

	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	{
		struct mpr_mallopt rec = {{MPR_MALLOPT, 0, sizeof(rec)},
					  ticks(),
					  (int32_t)a0,
					  (int32_t)a1,
					  (int32_t)ret,
					  MPR_STACK_NONE};

		if (fresh(&call, rec.time)) {
			rec.stack = take_stack(&call, rec.time);
			if (!ring_put(call.c, call.t, &rec.h, true))
				lost(&call, MPR_LOST_OTHER, 0);
		}
	}
	end(&call);
	return ret;
}
