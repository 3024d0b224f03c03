/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hook bodies of mappings and of mallopt; the rules of hooks.c apply. */
#include "agent/call.h"

#define IPC_STAT 2

/* asm-generic/shmbuf.h; with room for the fields after the size */
struct shmid64_ds {
	uint32_t perm[6];
	uint16_t seq, pad;
	unsigned long unused[2];
	size_t segment_size;
	unsigned long rest[12];
};

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

	if (!fresh(call, now, MPR_LOST_MAP))
		return false;
	if (with_stack)
		rec.stack = take_stack(call, now);
	if (ring_put(call->c, call->t, &rec, ring_limit(call->c, true)))
		return true;
	lost(call, MPR_LOST_MAP, 0);
	return false;
}

static inline bool failed(ag_word_t ret)
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

	if (unlikely(!begin(&call, f, true)))
		return frame_mmap(f, a0, a1, a2, a3, a4);
	addr = frame_mmap(f, a0, a1, a2, a3, a4);
	if (!failed(addr))
		put_map(&call, MPR_MAP, addr, a1, a0, (uint32_t)a2, (uint32_t)a3, (int32_t)a4,
			true);
	end(&call);
	return addr;
}

AG_HOOK(ag_munmap)
{
	struct ag_call call;
	ag_word_t ret;
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

AG_HOOK(ag_mremap)
{
	struct ag_call call;
	ag_word_t addr;
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
	struct shmid64_ds ds;

	if (!call->c->may_syscall ||
	    raw_syscall(AG_NR_SHMCTL, id, IPC_STAT | AG_IPC_64, (long)&ds, 0, 0, 0) < 0)
		return 0;
	return ds.segment_size;
}

AG_HOOK(ag_shmat)
{
	struct ag_call call;
	ag_word_t addr;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	addr = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (!failed(addr))
		put_map(&call, MPR_MAP, addr, shm_size(&call, (int32_t)a0), a1, 0, (uint32_t)a2,
			(int32_t)a0, true);
	end(&call);
	return addr;
}

AG_HOOK(ag_shmdt)
{
	struct ag_call call;
	ag_word_t ret;
	bool put;

	if (unlikely(!begin(&call, f, true)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	/* Length 0: the whole segment that was attached there. */
	put = put_map(&call, MPR_UNMAP, a0, 0, 0, 0, 0, -1, true);
	count_unmap(&call);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	if (put && (int)ret != 0)
		put_map(&call, MPR_UNMAP_FAILED, a0, 0, 0, 0, 0, -1, false);
	end(&call);
	return ret;
}

AG_HOOK(ag_mallopt)
{
	struct ag_call call;
	ag_word_t ret;

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

		if (fresh(&call, rec.time, MPR_LOST_OTHER)) {
			rec.stack = take_stack(&call, rec.time);
			if (!ring_put(call.c, call.t, &rec, ring_limit(call.c, true)))
				lost(&call, MPR_LOST_OTHER, 0);
		}
	}
	end(&call);
	return ret;
}
