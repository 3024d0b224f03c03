/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hook bodies of mappings and of mallopt; the rules of hooks.c apply. */
#include "agent/call.h"

#define IPC_STAT 2

/* asm-generic/shmbuf.h; with room for the fields after the size */
struct ag_shmid64_ds {
	uint32_t perm[6];
	uint16_t seq, pad;
	unsigned long unused[2];
	size_t segment_size;
	unsigned long rest[12];
};

static bool ag_put_map(const struct ag_call *call, enum mpr_type type, uint64_t addr,
		       uint64_t length, uint64_t old_addr, uint32_t prot, uint32_t flags,
		       int32_t fd, bool with_stack)
{
	uint64_t now = ag_ticks();
	struct mpr_map rec = {{type, call->inner ? MPR_F_INNER : 0, sizeof(rec)},
			      now,
			      ag_addr_hook(call->f->desc, addr),
			      length,
			      old_addr,
			      prot,
			      flags,
			      fd,
			      MPR_STACK_NONE};

	if (!ag_recorder_alive(call, now, MPR_LOST_MAP))
		return false;
	if (with_stack)
		rec.stack = ag_take_stack(call, now);
	if (ag_ring_put(call->c, call->t, &rec, ag_ring_limit(call->c, true)))
		return true;
	ag_lost(call, MPR_LOST_MAP, 0);
	return false;
}

static inline bool ag_failed(ag_word_t ret)
{
	return ret == UINTPTR_MAX;
}

static inline void count_unmap(const struct ag_call *call)
{
	__atomic_fetch_add(&call->c->unmaps, 1, __ATOMIC_RELAXED);
}

AG_HOOK(ag_mmap)
{
	struct ag_call call;
	ag_word_t addr;

	if (unlikely(!ag_begin(&call, f, true)))
		return ag_frame_mmap(f, a0, a1, a2, a3, a4);
	addr = ag_frame_mmap(f, a0, a1, a2, a3, a4);
	if (!ag_failed(addr))
		ag_put_map(&call, MPR_MAP, addr, a1, a0, (uint32_t)a2, (uint32_t)a3, (int32_t)a4,
			   true);
	ag_end(&call);
	return addr;
}

AG_HOOK(ag_munmap)
{
	struct ag_call call;
	ag_word_t ret;
	bool put;

	if (unlikely(!ag_begin(&call, f, true)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	put = ag_put_map(&call, MPR_UNMAP, a0, a1, 0, 0, 0, -1, true);
	count_unmap(&call);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put && (int)ret != 0)
		ag_put_map(&call, MPR_UNMAP_FAILED, a0, a1, 0, 0, 0, -1, false);
	ag_end(&call);
	return ret;
}

AG_HOOK(ag_mremap)
{
	struct ag_call call;
	ag_word_t addr;
	bool put;

	if (unlikely(!ag_begin(&call, f, true)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	put = ag_put_map(&call, MPR_REMAP_BEGIN, a0, a1, 0, 0, 0, -1, false);
	count_unmap(&call);
	addr = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put)
		ag_put_map(&call, MPR_REMAP_END, ag_failed(addr) ? 0 : addr, a2, a0, 0,
			   (uint32_t)a3, -1, true);
	ag_end(&call);
	return addr;
}

static uint64_t shm_size(const struct ag_call *call, int32_t id)
{
	struct ag_shmid64_ds ds;

	if (!call->c->may_syscall ||
	    ag_raw_syscall(AG_NR_SHMCTL, id, IPC_STAT | AG_IPC_64, (long)&ds, 0, 0, 0) < 0)
		return 0;
	return ds.segment_size;
}

AG_HOOK(ag_shmat)
{
	struct ag_call call;
	ag_word_t addr;

	if (unlikely(!ag_begin(&call, f, true)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	addr = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (!ag_failed(addr))
		ag_put_map(&call, MPR_MAP, addr, shm_size(&call, (int32_t)a0), a1, 0, (uint32_t)a2,
			   (int32_t)a0, true);
	ag_end(&call);
	return addr;
}

AG_HOOK(ag_shmdt)
{
	struct ag_call call;
	ag_word_t ret;
	bool put;

	if (unlikely(!ag_begin(&call, f, true)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Length 0: the whole segment that was attached there. */
	put = ag_put_map(&call, MPR_UNMAP, a0, 0, 0, 0, 0, -1, true);
	count_unmap(&call);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put && (int)ret != 0)
		ag_put_map(&call, MPR_UNMAP_FAILED, a0, 0, 0, 0, 0, -1, false);
	ag_end(&call);
	return ret;
}

AG_HOOK(ag_mallopt)
{
	struct ag_call call;
	ag_word_t ret;

	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	{
		struct mpr_mallopt rec = {{MPR_MALLOPT, 0, sizeof(rec)},
					  ag_ticks(),
					  (int32_t)a0,
					  (int32_t)a1,
					  (int32_t)ret,
					  MPR_STACK_NONE};

		if (ag_recorder_alive(&call, rec.time, MPR_LOST_OTHER)) {
			rec.stack = ag_take_stack(&call, rec.time);
			if (!ag_ring_put(call.c, call.t, &rec, ag_ring_limit(call.c, true)))
				ag_lost(&call, MPR_LOST_OTHER, 0);
		}
	}
	ag_end(&call);
	return ret;
}
