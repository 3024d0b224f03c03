/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Offsets and sizes of the parts of the block; smaller ones for a process with little memory left.
 */
#include "inject/block/layout.h"

#include <errno.h>
#include <math.h>
#include "attach/proc/limits.h"
#include "inject/internal.h"
#include "unwind/rule.h"

#define PAGE	       4096ull
#define RULES	       65536u
#define RULE_CACHE     65536u
#define MAX_SLOTS      16384u
#define SLOT_OWN_BYTES (768ull << 10) /* struct ag_thread; asserted by the agent's build */
#define SHARE	       4	      /* memprof uses at most one part in so many */
#define PRESSURES      32 /* levels of thinning, at least, between thin_from and a full ring */
#define OWN_CHARGE     (1ull << 20) /* agent, gate, text, page tables (generous) */

struct room {
	uint32_t slots, interns, sampled; /* powers of two */
	uint64_t ring, arena, rows;	  /* bytes */
};

static const struct room plenty = {512, 1u << 21, 1u << 21, 2ull << 20, 512ull << 20, 512ull << 20};
static const struct room little = {64, 1u << 16, 1u << 17, 64ull << 10, 16ull << 20, 32ull << 20};

/* 32-bit processes have 3 GiB, and the recorder, of the same word size, must map the block as well.
 */
static const struct room narrow = {128, 1u << 18, 1u << 18, 256ull << 10, 64ull << 20, 64ull << 20};

static uint64_t align(uint64_t n, uint64_t a)
{
	return (n + a - 1) & ~(a - 1);
}

static uint32_t slots_for(size_t threads, uint32_t least)
{
	uint32_t n = least;

	while (n < 2 * threads && n < MAX_SLOTS)
		n *= 2;
	return n;
}

/* Sets the offsets.  Return: length of the block. */
static uint64_t lay_out(struct ss_control *c, const struct room *room)
{
	uint64_t at = SS_LISTS_OFFSET;
	uint64_t list =
	    align(sizeof(struct ss_module_list) + SS_MAX_MODULES * sizeof(struct ss_module), 64);

	c->journal = JOURNAL_OFFSET;
	c->module_list = at;
	at = align(at + SS_MODULE_LISTS * list, PAGE);
	c->rules = at;
	at = align(at + RULES * sizeof(struct uw_rule), PAGE);
	c->full_rules = at;
	at = align(at + RULES * sizeof(struct uw_full), PAGE);
	c->rule_cache = at;
	c->rule_cache_size = RULE_CACHE;
	at += 8ull * RULE_CACHE;
	c->interns = at;
	c->ninterns = room->interns;
	at += (uint64_t)room->interns * sizeof(struct ss_intern);
	c->arena = at;
	c->arena_words = room->arena / 8;
	c->arena_used = 1;
	at += room->arena;
	c->rows = at;
	c->rows_end = at += room->rows;
	c->sampled = at;
	c->nsampled = room->sampled;
	at += 8ull * room->sampled;
	c->slots = at;
	c->nslots = room->slots;
	c->slot_ring = SLOT_OWN_BYTES;
	c->ring_size = room->ring;
	c->ring_wake = ~(room->ring / 4 - 1);
	c->slot_stride = SLOT_OWN_BYTES + PAGE + room->ring;
	return at + room->slots * c->slot_stride;
}

void layout_rings(struct ss_control *c, bool lossless, bool thins)
{
	/* The reader always leaves MPR_RECENT bytes in the ring. */
	uint64_t zone = (c->ring_size - MPR_RECENT) / 8 * 3;

	c->lossless = lossless;
	c->ring_alloc = lossless ? c->ring_size : c->ring_size - c->ring_size / 8;
	c->ring_shift = 0;
	while (zone >> c->ring_shift > 2 * PRESSURES)
		c->ring_shift++;
	c->pressure = 0;
	c->ring_thin =
	    thins && !lossless && !c->sample_interval ? c->ring_alloc - zone : UINT64_MAX;
	/* Within a budget the level of sampling rises instead. */
	c->thin_from = c->overhead_ppm ? UINT64_MAX : c->ring_thin;
}

void layout_budget(struct ss_control *c, uint32_t ppm)
{
	c->overhead_ppm = ppm;
	c->sample_level = SS_LEVEL_FIRST;
	for (int k = 1; k < (int)(sizeof(c->part) / sizeof(c->part[0])); k++)
		c->part[k] = (uint32_t)llround(ldexp(-log1p(-ldexp(1, -k)), 32));
}

static int no_address_space(const struct target *t, uint64_t left, uint64_t need,
			    struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NO_ROOM, -ENOMEM,
		       "RLIMIT_AS leaves process %d (%s) %llu MiB of address space; memprof needs "
		       "%llu MiB, but uses at most a quarter of what is left; nothing was touched",
		       t->pid, t->status.name, (unsigned long long)(left >> 20),
		       (unsigned long long)(need >> 20));
}

static int no_memory(const struct target *t, const struct limits *l, uint64_t need,
		     struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NO_ROOM, -ENOMEM,
		       "the memory cgroup %s leaves process %d (%s) %llu KiB, memprof needs %llu "
		       "KiB; nothing was touched",
		       l->cgroup_path, t->pid, t->status.name,
		       (unsigned long long)(l->cgroup >> 10), (unsigned long long)(need >> 10));
}

void layout_default(size_t threads, uint64_t ring, struct layout *out)
{
	struct room room = arch_native()->word_size == 4 ? narrow : plenty;

	*out = (struct layout){0};
	room.slots = slots_for(threads, room.slots);
	room.ring = ring ? ring : room.ring;
	/* A small ring is asked for where memory is scarce, such as for hundreds of processes. */
	if (room.ring <= narrow.ring)
		room.sampled = narrow.sampled;
	out->length = lay_out(&out->control, &room);
}

int layout_choose(const struct target *t, uint64_t ring, struct layout *out, struct mp_err *err)
{
	struct room room = little;
	uint64_t charge, need;
	struct limits l;
	int ret = limits_read(t->pid, &l);

	if (ret)
		return target_refused(t, ret, err);
	layout_default(t->status.threads, ring, out);
	charge = t->status.threads * out->control.slot_stride + OWN_CHARGE;
	out->prefault = l.cgroup / SHARE < charge;
	if (!out->prefault && !t->status.vm_locked_kb && l.address_space / SHARE >= out->length)
		return 0;
	room.slots = slots_for(t->status.threads, room.slots);
	room.ring = ring && ring < room.ring ? ring : room.ring;
	out->length = lay_out(&out->control, &room);
	if (l.address_space / SHARE < out->length)
		return no_address_space(t, l.address_space, out->length, err);
	/* The recorder touches the pages first, so they are charged to its own cgroup. */
	need = SHARE * OWN_CHARGE + (l.shared_cgroup ? out->length : 0);
	return l.cgroup < need ? no_memory(t, &l, need, err) : 0;
}

static bool power_of_two(uint64_t n, uint64_t max)
{
	return n && !(n & (n - 1)) && n <= max;
}

bool layout_is_sound(const struct ss_control *c, uint64_t length)
{
	struct room room = {c->nslots,	  c->ninterns,	      (uint32_t)c->nsampled,
			    c->ring_size, 8 * c->arena_words, c->rows_end - c->rows};
	struct ss_control want = {0};

	if (!power_of_two(c->nslots, MAX_SLOTS) || !power_of_two(c->ninterns, plenty.interns) ||
	    !power_of_two(c->nsampled, plenty.sampled) || !power_of_two(c->ring_size, 1ull << 30) ||
	    c->arena_words > plenty.arena / 8 || room.rows > plenty.rows)
		return false;
	return lay_out(&want, &room) == length && c->journal == want.journal &&
	       c->rules == want.rules && c->full_rules == want.full_rules &&
	       c->rule_cache == want.rule_cache && c->rule_cache_size == want.rule_cache_size &&
	       c->interns == want.interns && c->arena == want.arena && c->rows == want.rows &&
	       c->sampled == want.sampled && c->slots == want.slots &&
	       c->slot_ring == want.slot_ring && c->slot_stride == want.slot_stride;
}
