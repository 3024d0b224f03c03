/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Journal entries, slots and islands of the hooks of a batch. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "inject/hooks/batch.h"
#include "inject/place.h"
#include "lib/fault.h"

int batch_no_entry(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -E2BIG,
		       "%d functions are hooked (those of unloaded libraries count as long as a "
		       "thread or a forked process may return to them)",
		       SS_MAX_HOOKS);
}

bool batch_reuses_entry(const struct hook_batch *b, uint32_t index)
{
	for (uint32_t i = 0; i < b->planned; i++) {
		if (b->work[i].index == index)
			return true;
	}
	return false;
}

bool batch_reuses(const struct hook_batch *b)
{
	return b->first + b->n > SS_MAX_HOOKS;
}

static bool slot_is_taken(const struct hook_batch *b, uint64_t slot)
{
	const struct ss_journal *j = b->s->journal;

	for (uint32_t i = 0; i < b->first; i++) {
		if (j->hook[i].slot_addr == slot && !batch_reuses_entry(b, i))
			return true;
	}
	for (uint32_t i = 0; i < b->planned; i++) {
		if (b->work[i].hook.slot_addr == slot)
			return true;
	}
	return false;
}

uint32_t batch_find_entry(const struct hook_batch *b)
{
	const struct session *s = b->s;

	if (b->first + b->planned < SS_MAX_HOOKS)
		return b->first + b->planned;
	for (uint32_t n = 0; n < b->first; n++) {
		uint32_t i = (s->next_reused + n) % SS_MAX_HOOKS;

		if (i < b->first && s->plan.hooks.at[i].gone && !s->journal->hook[i].patched &&
		    !b->busy[i] && !batch_reuses_entry(b, i))
			return i;
	}
	return SS_MAX_HOOKS;
}

/* Finds a slot less than @reach from both @low and @high; plans a new island if no existing one has
 * room.  Return: its address, 0 if there is none. */
static uint64_t slot_between(struct hook_batch *b, const struct maps *maps, uint64_t low,
			     uint64_t high, uint64_t reach)
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

uint64_t batch_find_slot(struct hook_batch *b, const struct maps *maps, uint64_t addr)
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

/* glibc's own malloc and calloc call no hooked function, so they get the leaf entries. */
static uint64_t entry_of(const struct session *s, const struct planned_hook *h)
{
	if (s->zero && h->kind == SS_HOOK_ALLOC && h->size_kind != SS_SIZE_ARG0_X_ARG1)
		return s->blob.entry[BLOB_ZERO_ALLOC];
	if (s->free_stacks && (h->kind == SS_HOOK_FREE || h->kind == SS_HOOK_FREE_THROUGH))
		return s->blob.entry[BLOB_FREE_TRACED];
	if (!s->layout.sample_interval && !s->layout.overhead_ppm)
		return s->blob.entry[h->kind];
	if (h->glibc_chunks && !strcmp(h->name, "malloc"))
		return s->blob.sample_entry[BLOB_LEAF_MALLOC];
	if (h->glibc_chunks && !strcmp(h->name, "calloc"))
		return s->blob.sample_entry[BLOB_LEAF_CALLOC];
	return s->blob.sample_entry[h->kind];
}

void batch_build_slot(const struct hook_batch *b, const struct planned_hook *h, struct work *w)
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

int batch_map_islands(struct hook_batch *b, struct mp_err *err)
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

/* The hook that owns the slot after this batch, or NULL. */
static const struct ss_journal_hook *slot_owner(const struct hook_batch *b, uint64_t slot)
{
	const struct ss_journal *j = b->s->journal;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->work[i].hook.slot_addr == slot)
			return &b->work[i].hook;
	}
	for (uint32_t i = 0; i < b->first; i++) {
		if (j->hook[i].slot_addr == slot && !batch_reuses_entry(b, i))
			return &j->hook[i];
	}
	return NULL;
}

static bool gets_slots(const struct hook_batch *b, uint32_t island)
{
	uint64_t addr = b->s->journal->island[island].addr;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->work[i].hook.slot_addr - addr < ISLAND_BYTES)
			return true;
	}
	return false;
}

int batch_publish_islands(const struct hook_batch *b)
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
	return tables_publish(&s->tables, batch_reuses(b));
}

int batch_write_slots(struct hook_batch *b, struct mp_err *err)
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
