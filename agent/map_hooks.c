/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hook bodies of mappings and of mallopt; the rules of hooks.c hold. */
#include "agent/call.h"

#define SHMID_DS_SIZE 128 /* struct shmid_ds of 64-bit Linux: 112 bytes */
#define SHM_SEGSZ     6	  /* index of shm_segsz in 8-byte words */
#define IPC_STAT      2

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

		if (fresh(&call, rec.time, MPR_LOST_OTHER)) {
			rec.stack = take_stack(&call, rec.time);
			if (!ring_put(call.c, call.t, &rec, ring_limit(call.c, true)))
				lost(&call, MPR_LOST_OTHER, 0);
		}
	}
	end(&call);
	return ret;
}
