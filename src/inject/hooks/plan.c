/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plans the patches of a batch, while the target runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "inject/hooks/batch.h"
#include "inject/hooks/rseq.h"
#include "attach/steps.h"

#define TRIES	       50	    /* while another library is at the address */
#define PAGEMAP_SHARED (1ull << 61) /* file page or shared anonymous (admin-guide/mm/pagemap) */
#define PAGE	       4096ull

static bool page_is_file(pid_t pid, uint64_t addr)
{
	uint64_t entry = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_of(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &entry, sizeof(entry), (off_t)(addr / PAGE * 8)) != sizeof(entry))
		entry = 0;
	close(fd);
	/* A page that is not present is not modified either. */
	return !(entry >> 63) || entry & PAGEMAP_SHARED;
}

/* Functions without which the recorded numbers would be wrong. */
static bool essential(const struct planned_hook *h)
{
	return h->kind == SS_HOOK_FREE || h->kind == SS_HOOK_FREE_THROUGH ||
	       h->kind == SS_HOOK_REALLOC || !strcmp(h->name, "malloc") ||
	       !strcmp(h->name, "calloc");
}

/* Does the window overlap a restartable sequence?  Return: 1 yes, 0 no, or a negative errno. */
static int in_sequence(struct target *t, const struct planned_hook *h,
		       const struct arch_patch *patch)
{
	return h->rseq_length ? rseq_overlaps(t, h->rseq_list, h->rseq_length, patch->addr,
					      patch->addr + patch->length)
			      : 0;
}

/* Plans the hook after those that are planned; does not increment @b->planned. */
static int plan_one(struct hook_batch *b, const struct maps *maps, struct mp_err *err)
{
	struct session *s = b->s;
	const struct planned_hook *h = &s->plan.hooks.at[b->first + b->planned];
	struct work *w = &b->work[b->planned];
	struct ss_journal_hook *jh = &w->hook;
	size_t size = h->end - h->addr;
	enum arch_refusal refusal;
	int sequence;
	uint8_t *code;

	memset(jh, 0, sizeof(*jh));
	w->index = batch_find_entry(b);
	if (w->index == SS_MAX_HOOKS)
		return batch_no_entry(err);
	jh->name = journal_name(s->journal, b->nnames, h->name, h->module, h->kind);
	if (jh->name == SS_MAX_NAMES)
		return mp_fail(err, MP_EXIT_FAILURE, -E2BIG,
			       "more than %d functions were hooked since the recording began",
			       SS_MAX_NAMES);
	code = malloc(size);
	jh->addr = h->addr;
	jh->map_start = h->map_start;
	jh->map_offset = h->map_offset;
	jh->ino = h->ino;
	jh->dev_major = h->dev_major;
	jh->dev_minor = h->dev_minor;
	if (!code || !journal_hook_mapped(maps, jh) || mem_read(&s->t->mem, h->addr, code, size)) {
		free(code);
		return mp_fail(err, MP_EXIT_FAILURE, -EIO, "cannot read the text of %s in %s",
			       h->name, h->module);
	}
	jh->slot_addr = batch_find_slot(b, maps, h->addr);
	refusal = ARCH_REFUSE_REACH;
	if (jh->slot_addr)
		refusal = s->t->arch->patch.plan(code, size, h->addr | h->code_bits,
						 jh->slot_addr + SLOT_ENTRY,
						 jh->slot_addr + SLOT_RELOCATED, &w->patch);
	sequence = refusal == ARCH_OK ? in_sequence(s->t, h, &w->patch) : 0;
	if (sequence > 0)
		refusal = ARCH_REFUSE_RSEQ;
	/* The text is not read again, because another library could be mapped there by now. */
	if (refusal == ARCH_OK)
		memcpy(jh->old_bytes, code + (w->patch.addr - h->addr), w->patch.length);
	else
		w->own_text = map_has(s->t->pid, maps_find(maps, h->addr), h->addr, code, size);
	free(code);
	if (refusal != ARCH_OK)
		return mp_fail(
		    err, refusal == ARCH_REFUSE_REACH ? MP_EXIT_NO_ROOM : MP_EXIT_UNPATCHABLE,
		    -ENOTSUP, "%s in %s%s%s%s cannot be hooked safely: %s; nothing was changed",
		    h->name, h->module, h->owner ? " (" : "", h->owner ? h->owner : "",
		    h->owner ? ")" : "", arch_refusal_text(refusal));
	if (sequence < 0)
		return mp_fail(err, MP_EXIT_FAILURE, -EIO, "cannot read the text of %s in %s",
			       h->name, h->module);
	jh->addr = w->patch.addr;
	jh->function_end = h->end;
	jh->relocated_addr = jh->slot_addr + SLOT_RELOCATED;
	jh->relocated_length = w->patch.relocated_length;
	jh->length = w->patch.length;
	jh->insns = w->patch.insns;
	memcpy(jh->old_off, w->patch.old_off, sizeof(jh->old_off));
	memcpy(jh->new_off, w->patch.new_off, sizeof(jh->new_off));
	memcpy(jh->new_bytes, w->patch.new_bytes, w->patch.length);
	jh->page_was_clean =
	    page_is_file(s->t->pid, jh->addr) && page_is_file(s->t->pid, jh->addr + jh->length - 1);
	jh->kind = h->kind;
	batch_build_slot(b, h, w);
	if (jh->name == b->nnames)
		b->nnames++;
	return 0;
}

/* Was the library of the function that plan_one() failed on unloaded since the function was found?
 * Another library can be mapped in its place. */
static bool is_gone(const struct hook_batch *b, const struct maps *maps)
{
	const struct ss_journal_hook *h = &b->work[b->planned].hook;
	struct maps now;
	bool gone;

	if (!journal_hook_mapped(maps, h))
		return true;
	if (maps_read(b->s->t->pid, &now))
		return false;
	gone = !journal_hook_mapped(&now, h);
	maps_free(&now);
	return gone;
}

/* plan_one() while the process runs: the text that it reads can be that of another library at the
 * same address.  Return: as plan_one(), or -ENOENT if the function is gone. */
static int plan_running(struct hook_batch *b, const struct maps *maps, struct mp_err *err)
{
	int ret = 0;

	for (int i = 0; i < TRIES; i++) {
		ret = plan_one(b, maps, err);
		if ((ret != -EIO && ret != -ENOTSUP) ||
		    (ret == -ENOTSUP && b->work[b->planned].own_text))
			return ret;
		if (is_gone(b, maps))
			return -ENOENT;
	}
	return ret;
}

int batch_plan(struct hook_batch *b, const struct maps *maps, struct mp_err *err)
{
	struct hook_plan *plan = &b->s->plan;

	b->nislands = b->s->journal->nislands;
	b->nnames = b->s->journal->nnames;
	b->planned = 0;
	while (b->first + b->planned < plan->hooks.n) {
		uint32_t i = b->first + b->planned;
		struct planned_hook h = plan->hooks.at[i];
		struct mp_err why;
		int ret;

		/* The aligned operator new of libstdc++ is not hooked: it calls aligned_alloc,
		 * whose hook fills the block with zeros. */
		if (b->s->zero && h.sibling_addr) {
			hook_plan_drop(plan, i);
			continue;
		}
		if (h.kind == SS_HOOK_ALLOC_THROW && h.sibling < 0 && !h.sibling_addr)
			ret = mp_fail(&why, MP_EXIT_UNPATCHABLE, -ENOTSUP,
				      "%s in %s: the nothrow variant, which this hook calls, "
				      "cannot be hooked",
				      h.name, h.module);
		else
			ret = plan_running(b, maps, &why);
		if (!ret) {
			steps_add(b->s->t->steps, "hook: %s in %s at %#llx, %u bytes, slot %#llx",
				  h.name, h.module, (unsigned long long)h.addr,
				  b->work[b->planned].hook.length,
				  (unsigned long long)b->work[b->planned].hook.slot_addr);
			b->planned++;
			continue;
		}
		steps_add(b->s->t->steps, "no hook: %s in %s: %s", h.name, h.module, why.what);
		/* A wrapper is not needed if it calls another hooked function, which sees the
		 * call. */
		if (ret == -ENOENT || (ret == -ENOTSUP && hook_calls_hooked(b->s->t, plan, &h))) {
			hook_plan_drop(plan, i);
			continue;
		}
		if ((ret != -ENOTSUP && ret != -EIO) || (essential(&h) && !b->first)) {
			if (err)
				*err = why;
			return ret;
		}
		snprintf(plan->refused + strlen(plan->refused),
			 sizeof(plan->refused) - strlen(plan->refused), "%s%s",
			 plan->refused[0] ? "; " : "", why.what);
		hook_plan_drop(plan, i);
	}
	b->n = b->planned;
	return 0;
}
