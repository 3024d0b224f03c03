/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Installs hooks.  Everything is computed before the stop; during the stop it is only checked and
 * copied.
 *
 * A planned hook is entered in the journal when it is installed, so that the journal of a failed
 * batch still has exactly what is in the target.  It gets a new entry.  If there is none left, it
 * gets the entry of a function whose module was unloaded, provided that no thread can return to its
 * slot and no forked child still has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach/map_file.h"
#include "export/text.h"
#include "inject/family.h"
#include "inject/hooks/inside.h"
#include "inject/hooks/rseq.h"
#include "inject/hooks/stackwalk.h"
#include "inject/internal.h"
#include "inject/place.h"
#include "lib/fault.h"
#include "lib/priority.h"

#define TRIES	       50	    /* stops, while a thread is in the middle of a window */
#define PAGEMAP_SHARED (1ull << 61) /* file page or shared anonymous (admin-guide/mm/pagemap) */
#define PAGE	       4096ull

/* A hook that is being installed. */
struct work {
	struct ss_journal_hook hook; /* its future journal entry ... */
	uint32_t index;		     /* ... and the number of that entry */
	struct arch_patch patch;
	uint8_t slot[SLOT_BYTES];
	bool own_text; /* if refused: the text that was read is that of the file */
};

struct batch {
	struct session *s;
	uint32_t first, n; /* plan.hooks[first .. first+n) are to be installed */
	struct work *work;
	uint32_t planned;	 /* of work[], so far */
	uint32_t put;		 /* of work[], entered in the journal */
	uint32_t nislands;	 /* those of the journal, followed by planned ones */
	uint32_t nnames;	 /* the same for names */
	bool busy[SS_MAX_HOOKS]; /* entries that cannot be reused now */
	struct family_watch family;
};

static int no_entry(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -E2BIG,
		       "%d functions are hooked (those of unloaded libraries count as long as a "
		       "thread or a forked process may return to them)",
		       SS_MAX_HOOKS);
}

/* Is this journal entry reused by a hook of this batch? */
static bool is_reused(const struct batch *b, uint32_t index)
{
	for (uint32_t i = 0; i < b->planned; i++) {
		if (b->work[i].index == index)
			return true;
	}
	return false;
}

static bool reuses(const struct batch *b)
{
	return b->first + b->n > SS_MAX_HOOKS;
}

static bool slot_is_taken(const struct batch *b, uint64_t slot)
{
	const struct ss_journal *j = b->s->journal;

	for (uint32_t i = 0; i < b->first; i++) {
		if (j->hook[i].slot_addr == slot && !is_reused(b, i))
			return true;
	}
	for (uint32_t i = 0; i < b->planned; i++) {
		if (b->work[i].hook.slot_addr == slot)
			return true;
	}
	return false;
}

/* Finds an entry of the journal for the next hook.  Return: SS_MAX_HOOKS if there is none. */
static uint32_t find_entry(const struct batch *b)
{
	const struct session *s = b->s;

	if (b->first + b->planned < SS_MAX_HOOKS)
		return b->first + b->planned;
	for (uint32_t n = 0; n < b->first; n++) {
		uint32_t i = (s->next_reused + n) % SS_MAX_HOOKS;

		if (i < b->first && s->plan.hooks.at[i].gone && !s->journal->hook[i].patched &&
		    !b->busy[i] && !is_reused(b, i))
			return i;
	}
	return SS_MAX_HOOKS;
}

/* Finds a slot less than @reach from both @low and @high; plans a new island if no existing one has
 * room.  Return: its address, 0 if there is none. */
static uint64_t slot_between(struct batch *b, const struct maps *maps, uint64_t low, uint64_t high,
			     uint64_t reach)
{
	struct ss_journal *j = b->s->journal;
	uint64_t at;

	for (uint32_t i = 0; i < b->nislands; i++) {
		at = j->island[i].addr;
		if ((at > low ? at - low : low - at) >= reach ||
		    (at > high ? at - high : high - at) >= reach)
			continue;
		for (; at < j->island[i].addr + ISLAND_BYTES; at += SLOT_BYTES) {
			if (!slot_is_taken(b, at))
				return at;
		}
	}
	if (b->nislands == SS_MAX_ISLANDS)
		return 0;
	at = place_near(maps, low, high, reach, ISLAND_BYTES);
	for (uint32_t i = 0; at && i < b->nislands; i++) {
		/* Planned islands are not in the maps yet. */
		if (at == j->island[i].addr)
			at += 4 * ISLAND_BYTES;
	}
	if (!at)
		return 0;
	j->island[b->nislands].addr = at;
	j->island[b->nislands++].length = ISLAND_BYTES;
	return at;
}

/* Finds a slot within reach of a short jump from @addr, else of a long one. */
static uint64_t find_slot(struct batch *b, const struct maps *maps, uint64_t addr)
{
	const struct arch *arch = b->s->t->arch;
	uint64_t region = addr & ~(arch->patch.region - 1), at = 0;

	if (arch->patch.region)
		at = slot_between(b, maps, region, region + arch->patch.region, arch->patch.region);
	if (!at)
		at = slot_between(b, maps, addr, addr, arch->patch.reach);
	return at || !arch->patch.far_reach
		   ? at
		   : slot_between(b, maps, addr, addr, arch->patch.far_reach);
}

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

/* glibc's own malloc and calloc call no hooked function, so they get the leaf entries. */
static uint64_t entry_of(const struct session *s, const struct planned_hook *h)
{
	if (s->zero && h->kind == SS_HOOK_ALLOC && h->size_kind != SS_SIZE_ARG0_X_ARG1)
		return s->blob.entry[BLOB_ZERO_ALLOC];
	if (s->free_stacks && (h->kind == SS_HOOK_FREE || h->kind == SS_HOOK_FREE_THROUGH))
		return s->blob.entry[BLOB_FREE_TRACED];
	if (!s->layout.sample_interval)
		return s->blob.entry[h->kind];
	if (h->glibc_chunks && !strcmp(h->name, "malloc"))
		return s->blob.sample_entry[BLOB_LEAF_MALLOC];
	if (h->glibc_chunks && !strcmp(h->name, "calloc"))
		return s->blob.sample_entry[BLOB_LEAF_CALLOC];
	return s->blob.sample_entry[h->kind];
}

static void build_slot(const struct batch *b, const struct planned_hook *h, struct work *w)
{
	const struct session *s = b->s;
	const struct ss_journal_hook *jh = &w->hook;
	struct ss_desc d = {.original_addr = jh->relocated_addr | h->code_bits,
			    .function_addr = h->addr,
			    .hook = (uint16_t)jh->name,
			    .kind = h->kind,
			    .size_kind = h->size_kind,
			    .glibc_chunks = h->glibc_chunks,
			    .gate_addr = s->journal->gate_addr};
	uint64_t entry = s->journal->agent_addr + entry_of(s, h);

	d.own_code = h->own_start;
	d.own_code_length = h->own_end - h->own_start;
	d.sibling_addr = h->sibling_addr;
	if (h->sibling >= 0)
		d.sibling_addr = b->work[(uint32_t)h->sibling - b->first].hook.relocated_addr |
				 s->plan.hooks.at[h->sibling].code_bits;
	memset(w->slot, 0xcc, sizeof(w->slot));
	memcpy(w->slot, &d, sizeof(d));
	s->t->arch->patch.encode_slot(w->slot + SLOT_ENTRY,
				      (jh->slot_addr + SLOT_ENTRY) | h->code_bits, jh->slot_addr,
				      entry);
	memcpy(w->slot + SLOT_RELOCATED, w->patch.relocated, w->patch.relocated_length);
}

/* Functions without which the recorded numbers would be wrong. */
static bool essential(const struct planned_hook *h)
{
	return h->kind == SS_HOOK_FREE || h->kind == SS_HOOK_FREE_THROUGH ||
	       h->kind == SS_HOOK_REALLOC || !strcmp(h->name, "malloc") ||
	       !strcmp(h->name, "calloc");
}

static void drop_planned(struct hook_plan *plan, size_t i)
{
	memmove(&plan->hooks.at[i], &plan->hooks.at[i + 1],
		(plan->hooks.n - i - 1) * sizeof(plan->hooks.at[0]));
	plan->hooks.n--;
	vec_for_each (&plan->hooks, h) {
		if (h->sibling == (int)i)
			h->sibling = -1;
		else if (h->sibling > (int)i)
			h->sibling--;
	}
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
static int plan_one(struct batch *b, const struct maps *maps, struct mp_err *err)
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
	w->index = find_entry(b);
	if (w->index == SS_MAX_HOOKS)
		return no_entry(err);
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
	jh->slot_addr = find_slot(b, maps, h->addr);
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
	build_slot(b, h, w);
	if (jh->name == b->nnames)
		b->nnames++;
	return 0;
}

/* True also if the maps cannot be read. */
static bool is_mapped(pid_t pid, uint64_t addr)
{
	struct maps maps;
	bool is;

	if (maps_read(pid, &maps))
		return true;
	is = maps_find(&maps, addr) != NULL;
	maps_free(&maps);
	return is;
}

/* Was the library of the function that plan_one() failed on unloaded since the function was found?
 * Another library can be mapped in its place. */
static bool is_gone(const struct batch *b, const struct maps *maps)
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
static int plan_running(struct batch *b, const struct maps *maps, struct mp_err *err)
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

static int plan_all(struct batch *b, const struct maps *maps, struct mp_err *err)
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
			drop_planned(plan, i);
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
			b->planned++;
			continue;
		}
		/* A wrapper is not needed if it calls another hooked function, which sees the
		 * call. */
		if (ret == -ENOENT || (ret == -ENOTSUP && hook_calls_hooked(b->s->t, plan, &h))) {
			drop_planned(plan, i);
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
		drop_planned(plan, i);
	}
	b->n = b->planned;
	return 0;
}

/* Moves a thread whose pc is inside a window to the same instruction of the relocated copy, which
 * continues in the function whether or not the window is patched. */
static int move_pc(struct target *t, struct thread *th, const struct ss_journal_hook *h)
{
	struct arch_regs regs;
	uint64_t pc;

	if (thread_get_regs(t, th))
		return 0; /* waits in vfork, which is not an allocator function */
	pc = t->arch->regs.get_pc(&th->regs);
	if (pc <= h->addr || pc >= h->addr + h->length)
		return 0;
	for (uint32_t i = 0; i < h->insns; i++) {
		if (pc != h->addr + h->old_off[i])
			continue;
		regs = th->regs;
		t->arch->regs.set_pc(&regs, h->relocated_addr + h->new_off[i]);
		return thread_put_regs(t, th, &regs);
	}
	return 0;
}

/* Is @pc inside a group of instructions that is relocated as one and cannot be split? */
static bool cannot_move(const struct arch *arch, const struct ss_journal_hook *h, uint64_t pc)
{
	if (pc <= h->addr || pc >= h->addr + h->length)
		return false;
	for (uint32_t i = 0; i < h->insns; i++) {
		if (pc == h->addr + h->old_off[i])
			return false;
	}
	return arch->patch.groups;
}

static bool pc_in_group(const struct batch *b, struct thread *th)
{
	const struct arch *arch = b->s->t->arch;
	bool badly = false;

	if (thread_get_regs(b->s->t, th))
		return false;
	for (uint32_t i = 0; i < b->n && !badly; i++)
		badly = cannot_move(arch, &b->work[i].hook, arch->regs.get_pc(&th->regs));
	return badly;
}

/* Can a signal handler return into the middle of a window, or is a thread inside a group of
 * instructions that cannot be split?  Other threads can be moved. */
static bool windows_busy(const struct batch *b, const struct maps *maps)
{
	struct span *spans = calloc(b->n + 1, sizeof(*spans));
	bool busy = false;

	if (!spans)
		return true;
	for (uint32_t i = 0; i < b->n; i++)
		spans[i] = (struct span){b->work[i].hook.addr + 1,
					 b->work[i].hook.addr + b->work[i].hook.length};
	vec_for_each (&b->s->t->threads, th) {
		busy = stack_interrupted(b->s->t, *th, maps, spans, b->n) || pc_in_group(b, *th);
		if (busy)
			break;
	}
	free(spans);
	return busy;
}

static int map_islands(struct batch *b, struct mp_err *err)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;
	uint32_t first = j->nislands, mapped = first;
	struct remote r;
	int ret, ended;

	if (b->nislands == first)
		return 0;
	ret = fault_fail("patch-carrier")
		  ? mp_fail(err, MP_EXIT_FAILURE, -EBUSY, "no thread can make a system call")
		  : remote_begin(&r, s->t, err);
	if (ret)
		return ret;
	/* Entered before they are mapped: if memprof dies, a later detach unmaps those that
	 * exist. */
	j->nislands = b->nislands;
	journal_publish(s);
	for (; mapped < b->nislands && !ret; mapped += !ret) {
		uint64_t addr;

		ret = fault_fail("patch-island")
			  ? -ENOMEM
			  : session_remote_map(&r, j->island[mapped].addr, j->island[mapped].length,
					       PROT_READ | PROT_EXEC,
					       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
					       -1, &addr);
	}
	ended = remote_end(&r);
	if (ret) {
		mp_fail(err, MP_EXIT_NO_ROOM, ret,
			"cannot map a page near the allocator of process %d: %s", s->t->pid,
			strerror(-ret));
		/* A call that was abandoned can have been executed, at the latest by
		 * remote_end(). */
		j->nislands =
		    mapped + (ret != -EEXIST && is_mapped(s->t->pid, j->island[mapped].addr));
		journal_publish(s);
	}
	if (ret || !ended)
		return ret;
	return mp_fail(err, MP_EXIT_FAILURE, ended,
		       "cannot restore the registers of thread %d of process %d", r.carrier->tid,
		       s->t->pid);
}

static int write_slots(struct batch *b, struct mp_err *err)
{
	struct session *s = b->s;
	const uint32_t on = 1;
	int ret = 0;

	for (uint32_t i = 0; i < b->n && !ret; i++)
		ret = fault_fail("patch-slot")
			  ? -EIO
			  : mem_write_text(&s->t->mem, b->work[i].hook.slot_addr, b->work[i].slot,
					   SLOT_BYTES);
	fault_point("patch-slots");
	if (!ret)
		ret = mem_write(&s->t->mem, s->journal->gate_addr + offsetof(struct ss_gate, on),
				&on, sizeof(on));
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot write the agent's memory: %s",
			     strerror(-ret))
		   : 0;
}

static int write_text(struct batch *b, struct mp_err *err)
{
	struct session *s = b->s;

	/* Crash-safe from here on: any prefix of the journal can be undone. */
	journal_set_state(s, SS_PATCHING);
	for (b->put = 0; b->put < b->n;) {
		struct work *w = &b->work[b->put];
		const struct ss_journal_hook *h = &w->hook;
		int ret = 0;

		w->hook.patched = 1;
		journal_publish_hook(s, w->index, h);
		b->put++;
		fault_point("patch-journaled");
		vec_for_each (&s->t->threads, th) {
			if (!ret)
				ret = move_pc(s->t, *th, h);
		}
		fault_point("patch-moved");
		if (!ret)
			ret = mem_write_text(&s->t->mem, h->addr, h->new_bytes, h->length);
		if (!ret && fault_fail("patch-text"))
			ret = -EIO;
		if (ret)
			return mp_fail(err, MP_EXIT_FAILURE, ret,
				       "cannot write the text of %s in %s: %s",
				       s->journal->name[h->name].name,
				       s->journal->name[h->name].module, strerror(-ret));
		fault_point("patch-written");
	}
	journal_set_state(s, SS_LIVE);
	return 0;
}

/* Moves the installed hooks to the plan index of their journal entries; other hooks of the batch
 * are dropped. */
static void settle_plan(struct batch *b)
{
	struct session *s = b->s;

	for (uint32_t i = 0; i < b->put; i++) {
		uint32_t index = b->work[i].index;

		if (index < b->first)
			s->next_reused = index + 1;
		s->plan.hooks.at[index] = s->plan.hooks.at[b->first + i];
	}
	s->plan.hooks.n = s->journal->nhooks;
}

/*
 * Restores the text of the functions of a failed batch; the threads have not run since.  Their
 * journal entries remain, like those of unloaded modules, because a thread can have been moved to a
 * relocated copy.
 */
static void undo(struct batch *b, enum ss_state before)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;
	uint8_t now[SS_WINDOW];

	for (uint32_t k = 0; k < b->put; k++) {
		const struct ss_journal_hook *h = &b->work[k].hook;
		uint32_t i = b->work[k].index;

		/* Read back, because a failed write can have changed the first of two pages. */
		ignore_result(mem_write_text(&s->t->mem, h->addr, h->old_bytes, h->length));
		if (mem_read(&s->t->mem, h->addr, now, h->length) ||
		    memcmp(now, h->old_bytes, h->length))
			continue; /* session_close() tries again */
		journal_forget_hook(s, i);
		s->plan.hooks.at[i].gone = true;
	}
	if (j->state == SS_PATCHING)
		journal_set_state(s, before);
}

/* Is the text of the batch still what the plan was made from?  Since then libraries can have been
 * unloaded and others loaded in their place, or the program can have changed it. */
static bool text_unchanged(const struct batch *b, const struct maps *maps)
{
	uint8_t now[SS_WINDOW];

	for (uint32_t i = 0; i < b->n; i++) {
		const struct ss_journal_hook *h = &b->work[i].hook;

		if (!journal_hook_mapped(maps, h) ||
		    mem_read(&b->s->t->mem, h->addr, now, h->length) ||
		    memcmp(now, h->old_bytes, h->length))
			return false;
	}
	return true;
}

/* The hook that owns the slot after this batch, or NULL. */
static const struct ss_journal_hook *slot_owner(const struct batch *b, uint64_t slot)
{
	const struct ss_journal *j = b->s->journal;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->work[i].hook.slot_addr == slot)
			return &b->work[i].hook;
	}
	for (uint32_t i = 0; i < b->first; i++) {
		if (j->hook[i].slot_addr == slot && !is_reused(b, i))
			return &j->hook[i];
	}
	return NULL;
}

static bool gets_slots(const struct batch *b, uint32_t island)
{
	uint64_t addr = b->s->journal->island[island].addr;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->work[i].hook.slot_addr - addr < ISLAND_BYTES)
			return true;
	}
	return false;
}

/* Publishes rows for the relocated prologues, so that a stack can be unwound if a signal interrupts
 * them. */
static int publish_islands(const struct batch *b)
{
	struct session *s = b->s;
	const struct ss_journal *j = s->journal;
	uint16_t entry = tables_entry_rule(&s->tables);

	for (uint32_t k = 0; k < j->nislands; k++) {
		uint64_t pc[ISLAND_BYTES / SLOT_BYTES * (SS_MAX_INSNS + 1)];
		uint16_t rule[ISLAND_BYTES / SLOT_BYTES * (SS_MAX_INSNS + 1)];
		uint64_t at = j->island[k].addr, end = at + j->island[k].length;
		uint32_t n = 0;

		if (!gets_slots(b, k))
			continue;
		for (; at < j->island[k].addr + ISLAND_BYTES; at += SLOT_BYTES) {
			const struct ss_journal_hook *h = slot_owner(b, at);

			if (!h)
				continue;
			pc[n] = at;
			rule[n++] = entry;
			for (uint32_t m = 0; m < h->insns; m++) {
				pc[n] = h->relocated_addr + h->new_off[m];
				rule[n++] = tables_rule_at(&s->tables, h->addr + h->old_off[m]);
			}
		}
		if (n && tables_add_rows(&s->tables, j->island[k].addr, end, pc, rule, n))
			return -ENOMEM;
	}
	return tables_publish(&s->tables, reuses(b));
}

/* Plans again, for example to find new places for islands that could not be mapped. */
static int replan(struct batch *b, struct maps *maps, struct mp_err *err)
{
	int ret;

	maps_free(maps);
	ret = maps_read(b->s->t->pid, maps);
	return ret ? target_refused(b->s->t, ret, err) : plan_all(b, maps, err);
}

enum outcome { DONE, AGAIN_AFTER_A_MOMENT, AGAIN_WITH_A_NEW_PLAN };

/* The process is not traced before hooks are installed, so it can have changed.  Return: 0 if it
 * runs the program that the session was opened in, or -ESRCH with @err. */
static int same_program(const struct session *s, const struct maps *maps, struct mp_err *err)
{
	if (session_is_mapped(s, maps))
		return 0;
	return mp_fail(
	    err, MP_EXIT_NO_PROCESS, -ESRCH,
	    maps->list.n
		? "process %d executed another program meanwhile; the new program was not touched"
		: "process %d has ended",
	    s->t->pid);
}

/*
 * Are entries that this batch reuses still in use?  An entry is in use if a thread can return to
 * its slot, or if a child that was forked since the plan was made has the text of the old module.
 * Return: 1 yes, and these entries are marked; 0 no; or -ENOMEM.
 */
static int entries_busy(struct batch *b, const struct maps *maps)
{
	const struct ss_journal *j = b->s->journal;
	struct inside in;
	bool family;
	int ret = 0;

	if (!reuses(b))
		return 0;
	if (inside_open(&in, b->s, false))
		return -ENOMEM;
	inside_read(&in);
	family = family_grew(&b->family);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t index = b->work[i].index;
		struct span slot;

		if (index >= b->first)
			continue;
		slot.start = j->hook[index].slot_addr;
		slot.end = slot.start + SLOT_BYTES;
		b->busy[index] = family || inside_slot(&in, &slot, maps);
		ret |= b->busy[index];
	}
	inside_free(&in);
	return ret;
}

/* Installs the batch; all threads must be stopped.  @may_wait: there is time for another stop.
 * Return: 0 or a negative errno; *@outcome is valid with 0. */
static int put_in(struct batch *b, bool may_wait, enum outcome *outcome, struct mp_err *err)
{
	const struct maps *maps; /* including the stacks of new threads */
	int ret = fault_fail("patch-maps") ? -EIO : target_maps(b->s->t, &maps);

	*outcome = DONE;
	if (ret)
		return target_refused(b->s->t, ret, err);
	ret = same_program(b->s, maps, err);
	if (ret)
		return ret;
	if (!text_unchanged(b, maps)) {
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return may_wait ? 0
				: mp_fail(err, MP_EXIT_UNPATCHABLE, -EAGAIN,
					  "process %d keeps changing the allocator's text, or "
					  "keeps unloading and loading the allocator; try again",
					  b->s->t->pid);
	}
	ret = entries_busy(b, maps);
	if (ret < 0)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	if (ret) {
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return may_wait ? 0 : no_entry(err);
	}
	if (windows_busy(b, maps)) {
		*outcome = AGAIN_AFTER_A_MOMENT;
		return may_wait ? 0
				: mp_fail(err, MP_EXIT_UNPATCHABLE, -EAGAIN,
					  "a signal handler keeps a thread at the start of an "
					  "allocator function; try again");
	}
	ret = map_islands(b, err);
	if (ret == -EEXIST && may_wait) {
		/* The program has mapped something there in the meantime. */
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return 0;
	}
	/* Rows must be published before the hooks can record events. */
	if (!ret && (ret = fault_fail("patch-rows") ? -ENOMEM : publish_islands(b)))
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot build unwind tables: %s",
			strerror(-ret));
	if (!ret)
		ret = write_slots(b, err);
	return ret ? ret : write_text(b, err);
}

int session_install(struct session *s, struct mp_err *err)
{
	struct batch b = {.s = s, .first = s->journal->nhooks};
	enum ss_state before = s->journal->state;
	enum outcome outcome = DONE;
	struct priority priority;
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps);

	if (ret) {
		s->plan.hooks.n = b.first;
		return target_refused(s->t, ret, err);
	}
	b.work = calloc(s->plan.hooks.n - b.first + 1, sizeof(*b.work));
	if (!b.work) {
		s->plan.hooks.n = b.first;
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	b.family.pid = s->t->pid;
	if (s->plan.hooks.n > SS_MAX_HOOKS && family_grew(&b.family))
		memset(b.busy, true, sizeof(b.busy));
	ret = plan_all(&b, &maps, err);
	if (ret == -ENOMEM)
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	priority_raise(&priority);
	for (int tries = 0; !ret; tries++) {
		ret = s->stopped ? 0 : session_stop(s->t, err);
		if (!ret)
			ret = put_in(&b, tries < TRIES && !s->stopped, &outcome, err);
		if (ret || outcome == DONE)
			break;
		if (outcome == AGAIN_AFTER_A_MOMENT) {
			target_run(s->t, 1000);
			continue;
		}
		target_release(s->t);
		ret = replan(&b, &maps, err);
	}
	settle_plan(&b);
	if (ret)
		undo(&b, before);
	/* A program that was stopped before is restored by session_close() before it has run. */
	if (!ret || !s->stopped) {
		target_release(s->t);
		s->patch_stop_ns = s->t->last_stop_ns;
		s->stopped = false;
	}
	priority_restore(&priority);
	family_forget(&b.family);
	free(b.work);
	maps_free(&maps);
	return ret;
}
