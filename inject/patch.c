/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hooks go in.  Everything is computed before the stop; the stop checks and copies.
 *
 * What is planned lies in the journal behind the entries that count (nhooks, nislands) and comes to
 * count one by one as it is put in: a batch that fails leaves a journal that says what is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "inject/internal.h"
#include "inject/place.h"
#include "inject/stackwalk.h"
#include "lib/fault.h"
#include "lib/priority.h"

#define TRIES	       50	    /* stops, when a thread is in the middle of a window */
#define PAGEMAP_SHARED (1ull << 61) /* file page or shared anonymous (admin-guide/mm/pagemap) */
#define PAGE	       4096ull

/* A hook that is being put in. */
struct work {
	struct arch_patch patch;
	uint8_t slot[SLOT_BYTES];
	uint8_t text[SS_WINDOW]; /* what the text was when it was planned */
};

struct batch {
	struct session *s;
	uint32_t first, n; /* hooks journal[first .. first+n) */
	struct work *work;
	uint32_t nislands; /* those of the journal, and behind them planned ones */
};

static uint32_t slots_used(const struct ss_journal *j, uint32_t nhooks, uint32_t island)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nhooks; i++)
		n += j->hook[i].slot_addr >= j->island[island].addr &&
		     j->hook[i].slot_addr < j->island[island].addr + j->island[island].length;
	return n;
}

/* A slot no farther than @reach from both @low and @high; plans a new island when none has room.
 * Return: 0: nowhere. */
static uint64_t slot_between(struct batch *b, const struct maps *maps, uint64_t low, uint64_t high,
			     uint64_t reach, uint32_t nhooks)
{
	struct ss_journal *j = b->s->journal;
	uint64_t at;

	for (uint32_t i = 0; i < b->nislands; i++) {
		uint32_t used = slots_used(j, nhooks, i);

		at = j->island[i].addr;
		if (used < ISLAND_BYTES / SLOT_BYTES && (at > low ? at - low : low - at) < reach &&
		    (at > high ? at - high : high - at) < reach)
			return at + (uint64_t)used * SLOT_BYTES;
	}
	if (b->nislands == SS_MAX_ISLANDS)
		return 0;
	at = place_near(maps, low, high, reach, ISLAND_BYTES);
	for (uint32_t i = 0; at && i < b->nislands; i++) {
		/* Planned ones are not in the maps yet. */
		if (at == j->island[i].addr)
			at += 4 * ISLAND_BYTES;
	}
	if (!at)
		return 0;
	j->island[b->nislands].addr = at;
	j->island[b->nislands++].length = ISLAND_BYTES;
	return at;
}

/* Where a short jump from @addr goes, or a long one. */
static uint64_t find_slot(struct batch *b, const struct maps *maps, uint64_t addr, uint32_t nhooks)
{
	const struct arch *arch = b->s->t->arch;
	uint64_t region = addr & ~(arch->region - 1), at = 0;

	if (arch->region)
		at = slot_between(b, maps, region, region + arch->region, arch->region, nhooks);
	if (!at)
		at = slot_between(b, maps, addr, addr, arch->reach, nhooks);
	return at || !arch->far_reach ? at
				      : slot_between(b, maps, addr, addr, arch->far_reach, nhooks);
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
	/* Not present: not modified either. */
	return !(entry >> 63) || entry & PAGEMAP_SHARED;
}

/* glibc's own malloc and calloc call no function that is hooked. */
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

static void build_slot(const struct session *s, const struct planned_hook *h, uint32_t index,
		       const struct ss_journal_hook *jh, struct work *w)
{
	struct ss_desc d = {.original_addr = jh->relocated_addr | h->code_bits,
			    .function_addr = h->addr,
			    .hook = (uint16_t)index,
			    .kind = h->kind,
			    .size_kind = h->size_kind,
			    .glibc_chunks = h->glibc_chunks,
			    .gate_addr = s->journal->gate_addr};
	uint64_t entry = s->journal->agent_addr + entry_of(s, h);

	d.text_addr = h->map_start;
	d.text_length = h->map_end - h->map_start;
	if (h->sibling >= 0)
		d.sibling_addr = s->journal->hook[h->sibling].relocated_addr |
				 s->plan.hooks.at[h->sibling].code_bits;
	memset(w->slot, 0xcc, sizeof(w->slot));
	memcpy(w->slot, &d, sizeof(d));
	s->t->arch->encode_slot(w->slot + SLOT_ENTRY, (jh->slot_addr + SLOT_ENTRY) | h->code_bits,
				jh->slot_addr, entry);
	memcpy(w->slot + SLOT_RELOCATED, w->patch.relocated, w->patch.relocated_length);
}

/* Without these the numbers would be wrong. */
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

static int plan_one(struct batch *b, const struct maps *maps, uint32_t index, struct mp_err *err)
{
	struct session *s = b->s;
	const struct planned_hook *h = &s->plan.hooks.at[index];
	struct ss_journal_hook *jh = &s->journal->hook[index];
	struct work *w = &b->work[index - b->first];
	size_t size = h->end - h->addr;
	enum arch_refusal refusal;
	uint8_t *code = malloc(size);

	memset(jh, 0, sizeof(*jh));
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
	jh->slot_addr = find_slot(b, maps, h->addr, index);
	refusal = ARCH_REFUSE_REACH;
	if (jh->slot_addr)
		refusal = s->t->arch->plan_patch(code, size, h->addr | h->code_bits,
						 jh->slot_addr + SLOT_ENTRY,
						 jh->slot_addr + SLOT_RELOCATED, &w->patch);
	free(code);
	if (refusal != ARCH_OK)
		return mp_fail(
		    err, refusal == ARCH_REFUSE_REACH ? MP_EXIT_NO_ROOM : MP_EXIT_UNPATCHABLE,
		    -ENOTSUP, "%s in %s cannot be hooked safely: %s; nothing was changed", h->name,
		    h->module, arch_refusal_text(refusal));
	if (mem_read(&s->t->mem, w->patch.addr, w->text, w->patch.length))
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
	memcpy(jh->old_bytes, w->text, w->patch.length);
	memcpy(jh->new_bytes, w->patch.new_bytes, w->patch.length);
	jh->page_was_clean =
	    page_is_file(s->t->pid, jh->addr) && page_is_file(s->t->pid, jh->addr + jh->length - 1);
	jh->kind = h->kind;
	snprintf(jh->name, sizeof(jh->name), "%s", h->name);
	snprintf(jh->module, sizeof(jh->module), "%s", h->module);
	build_slot(s, h, index, jh, w);
	return 0;
}

static int plan_all(struct batch *b, const struct maps *maps, struct mp_err *err)
{
	struct hook_plan *plan = &b->s->plan;

	b->nislands = b->s->journal->nislands;
	for (uint32_t i = b->first; i < plan->hooks.n;) {
		struct planned_hook h = plan->hooks.at[i];
		struct mp_err why;
		int ret;

		if (i == SS_MAX_HOOKS)
			return mp_fail(err, MP_EXIT_FAILURE, -E2BIG,
				       "more than %d functions to hook", SS_MAX_HOOKS);
		if (h.kind == SS_HOOK_ALLOC_THROW && h.sibling < 0)
			ret = mp_fail(&why, MP_EXIT_UNPATCHABLE, -ENOTSUP,
				      "%s in %s: its variant that does not throw cannot be hooked",
				      h.name, h.module);
		else
			ret = plan_one(b, maps, i, &why);
		if (!ret) {
			i++;
			continue;
		}
		/* A wrapper that calls another hooked function is seen there. */
		if (ret == -ENOTSUP && hook_goes_on(b->s->t, plan, &h)) {
			drop_planned(plan, i);
			continue;
		}
		/* A library that was loaded later may be gone again. */
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
	b->n = (uint32_t)plan->hooks.n - b->first;
	return 0;
}

/* Moves a thread that stands inside a window to the same instruction of the relocated copy, which
 * goes on in the function whether the window is patched or not. */
static int move_pc(struct target *t, struct thread *th, const struct ss_journal_hook *h)
{
	struct arch_regs regs;
	uint64_t pc;

	if (thread_get_regs(t, th))
		return 0; /* waits in vfork, which is no allocator */
	pc = t->arch->get_pc(&th->regs);
	if (pc <= h->addr || pc >= h->addr + h->length)
		return 0;
	for (uint32_t i = 0; i < h->insns; i++) {
		if (pc != h->addr + h->old_off[i])
			continue;
		regs = th->regs;
		t->arch->set_pc(&regs, h->relocated_addr + h->new_off[i]);
		return thread_put_regs(t, th, &regs);
	}
	return 0;
}

/* Within a group of instructions that is relocated as one? */
static bool cannot_move(const struct arch *arch, const struct ss_journal_hook *h, uint64_t pc)
{
	if (pc <= h->addr || pc >= h->addr + h->length)
		return false;
	for (uint32_t i = 0; i < h->insns; i++) {
		if (pc == h->addr + h->old_off[i])
			return false;
	}
	return arch->groups;
}

static bool stands_badly(const struct batch *b, struct thread *th)
{
	const struct arch *arch = b->s->t->arch;
	bool badly = false;

	if (thread_get_regs(b->s->t, th))
		return false;
	for (uint32_t i = b->first; i < b->first + b->n && !badly; i++)
		badly = cannot_move(arch, &b->s->journal->hook[i], arch->get_pc(&th->regs));
	return badly;
}

/* May a signal handler return into the middle of a window?  A thread's own pc can be moved. */
static bool windows_busy(const struct batch *b, const struct maps *maps)
{
	const struct ss_journal *j = b->s->journal;
	struct span *spans = calloc(b->n + 1, sizeof(*spans));
	bool busy = false;

	if (!spans)
		return true;
	for (uint32_t i = 0; i < b->n; i++)
		spans[i] = (struct span){j->hook[b->first + i].addr + 1,
					 j->hook[b->first + i].addr + j->hook[b->first + i].length};
	vec_for_each (&b->s->t->threads, th) {
		busy = stack_interrupted(b->s->t, *th, maps, spans, b->n) || stands_badly(b, *th);
		if (busy)
			break;
	}
	free(spans);
	return busy;
}

/* Where that cannot be read it is taken to be: session_unmap() looks before it unmaps. */
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
	/* Before they are mapped: if memprof dies, a later detach unmaps those that are there. */
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
		/* A call that was given up may have been made, at the latest by remote_end(). */
		j->nislands =
		    mapped + (ret != -EEXIST && is_mapped(s->t->pid, j->island[mapped].addr));
		journal_publish(s);
	}
	if (ret || !ended)
		return ret;
	return mp_fail(err, MP_EXIT_FAILURE, ended, "cannot put thread %d of process %d back",
		       r.carrier->tid, s->t->pid);
}

static int write_slots(struct batch *b, struct mp_err *err)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;
	const uint32_t on = 1;
	int ret = 0;

	for (uint32_t i = 0; i < b->n && !ret; i++)
		ret = fault_fail("patch-slot")
			  ? -EIO
			  : mem_write_text(&s->t->mem, j->hook[b->first + i].slot_addr,
					   b->work[i].slot, SLOT_BYTES);
	fault_point("patch-slots");
	if (!ret)
		ret = mem_write(&s->t->mem, j->gate_addr + offsetof(struct ss_gate, on), &on,
				sizeof(on));
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot write the agent's memory: %s",
			     strerror(-ret))
		   : 0;
}

static int write_text(struct batch *b, struct mp_err *err)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;

	/* Crash-safe from here on: any prefix of the journal can be undone. */
	journal_set_state(s, SS_PATCHING);
	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		struct ss_journal_hook *h = &j->hook[i];
		int ret = 0;

		h->patched = 1;
		journal_publish_hook(s, i);
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
				       "cannot write the text of %s in %s: %s", h->name, h->module,
				       strerror(-ret));
		fault_point("patch-written");
	}
	journal_set_state(s, SS_LIVE);
	return 0;
}

/*
 * The functions of a batch that failed get their text back; the threads have not run since.  Their
 * entries stay in the journal, as those of unloaded modules do: a thread may have been moved to a
 * relocated copy, whose slot is therefore not used again.
 */
static void undo(struct batch *b, enum ss_state before)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;
	uint8_t now[SS_WINDOW];

	for (uint32_t i = b->first; i < j->nhooks; i++) {
		const struct ss_journal_hook *h = &j->hook[i];

		/* Read back: a write that fails may have written the first of two pages. */
		ignore_result(mem_write_text(&s->t->mem, h->addr, h->old_bytes, h->length));
		if (mem_read(&s->t->mem, h->addr, now, h->length) ||
		    memcmp(now, h->old_bytes, h->length))
			continue; /* session_close() tries again */
		journal_forget_hook(s, i);
		s->plan.hooks.at[i].gone = true;
	}
	s->plan.hooks.n = j->nhooks;
	if (j->state == SS_PATCHING)
		journal_set_state(s, before);
}

static bool text_unchanged(const struct batch *b, const struct maps *maps)
{
	const struct ss_journal *j = b->s->journal;
	uint8_t now[SS_WINDOW];

	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		if (!journal_hook_mapped(maps, &j->hook[i]) ||
		    mem_read(&b->s->t->mem, j->hook[i].addr, now, j->hook[i].length) ||
		    memcmp(now, j->hook[i].old_bytes, j->hook[i].length))
			return false;
	}
	return true;
}

/* Rows for the relocated prologues, so that a stack that a signal took there is whole. */
static int publish_islands(const struct batch *b)
{
	struct session *s = b->s;
	const struct ss_journal *j = s->journal;
	uint16_t entry = tables_entry_rule(&s->tables);

	for (uint32_t k = 0; k < j->nislands; k++) {
		uint64_t pc[64 * (SS_MAX_INSNS + 3)];
		uint16_t rule[64 * (SS_MAX_INSNS + 3)];
		uint32_t n = 0;

		for (uint32_t i = 0;
		     i < b->first + b->n && n + SS_MAX_INSNS + 3 <= 64 * (SS_MAX_INSNS + 3); i++) {
			const struct ss_journal_hook *h = &j->hook[i];

			if (h->slot_addr < j->island[k].addr ||
			    h->slot_addr >= j->island[k].addr + j->island[k].length)
				continue;
			pc[n] = h->slot_addr;
			rule[n++] = entry;
			for (uint32_t m = 0; m < h->insns; m++) {
				pc[n] = h->relocated_addr + h->new_off[m];
				rule[n++] = tables_rule_at(&s->tables, h->addr + h->old_off[m]);
			}
		}
		if (n && tables_add_rows(&s->tables, j->island[k].addr,
					 j->island[k].addr + j->island[k].length, pc, rule, n))
			return -ENOMEM;
	}
	return tables_publish(&s->tables, false);
}

static int stop(struct session *s, struct mp_err *err)
{
	struct deadline deadline = session_stop_deadline(s->t);
	int ret = 0;

	if (s->stopped)
		return 0;
	if (!s->t->threads.n)
		ret = target_seize(s->t, &deadline, err);
	deadline = session_stop_deadline(s->t);
	return ret ? ret : target_stop(s->t, &deadline, err);
}

/* New places for the islands that could not be mapped. */
static int replan(struct batch *b, struct maps *maps, struct mp_err *err)
{
	int ret;

	maps_free(maps);
	ret = maps_read(b->s->t->pid, maps);
	return ret ? target_refused(b->s->t, ret, err) : plan_all(b, maps, err);
}

enum outcome { DONE, AGAIN_AFTER_A_MOMENT, AGAIN_WITH_A_NEW_PLAN };

/* Nobody holds the process before the hooks go in.  Return: 0 if it runs the program that the
 * session was opened in, or -ESRCH with @err. */
static int same_program(const struct session *s, const struct maps *maps, struct mp_err *err)
{
	uint64_t length;

	if (session_find(maps, &length) == s->journal->session_addr)
		return 0;
	return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
		       maps->list.n ? "process %d executed another program meanwhile; that one was "
				      "left alone"
				    : "process %d has ended",
		       s->t->pid);
}

/* All threads stand.  @may_wait: there is time for another stop.  Return: 0 or a negative errno;
 * *@outcome is valid with 0. */
static int put_in(struct batch *b, bool may_wait, enum outcome *outcome, struct mp_err *err)
{
	const struct maps *maps; /* with new threads' stacks */
	int ret = fault_fail("patch-maps") ? -EIO : target_maps(b->s->t, &maps);

	*outcome = DONE;
	if (ret)
		return target_refused(b->s->t, ret, err);
	ret = same_program(b->s, maps, err);
	if (ret)
		return ret;
	if (!text_unchanged(b, maps)) {
		/* A library that was loaded later may have been unloaded. */
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return may_wait && b->first
			   ? 0
			   : mp_fail(err, MP_EXIT_UNPATCHABLE, -EAGAIN,
				     "somebody else changed the allocator's text at the same time");
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
		/* The program mapped something there meanwhile. */
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return 0;
	}
	/* Rows first, events after. */
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
	ret = b.work ? plan_all(&b, &maps, err) : -ENOMEM;
	if (ret == -ENOMEM)
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	priority_raise(&priority);
	for (int tries = 0; !ret; tries++) {
		ret = stop(s, err);
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
	if (ret)
		undo(&b, before);
	/* A program that was stopped before is taken out by session_close() before it ran. */
	if (!ret || !s->stopped) {
		target_release(s->t);
		s->patch_stop_ns = s->t->last_stop_ns;
		s->stopped = false;
	}
	priority_restore(&priority);
	free(b.work);
	maps_free(&maps);
	return ret;
}
