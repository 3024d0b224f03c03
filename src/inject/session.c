/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens, refreshes and adopts sessions.  Memory in the target is made in open.c, patching is in
 * patch.c, the end in close.c. */
#include "inject/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/stat.h"
#include "attach/sandbox.h"
#include "inject/find.h"
#include "inject/internal.h"
#include "inject/stranger.h"
#include "inject/vdso.h"
#include "lib/fault.h"
#include "lib/priority.h"
#include "unwind/table_cache.h"

#define LINKED_MS      2000 /* age at which a program has been linked, also on a busy machine */
#define LINKED_LOOK_US 10000

static bool has_allocator(const struct hook_plan *plan)
{
	vec_for_each (&plan->hooks, h) {
		if (h->kind == SS_HOOK_ALLOC)
			return true;
	}
	return false;
}

static int refuse_unknown(const struct session *s, struct mp_err *err)
{
	const struct hook_plan *plan = &s->plan;
	int ret = mp_fail(err, MP_EXIT_NO_ALLOCATOR, -ENOENT,
			  "process %d (%s) has no allocator that memprof knows (looked for malloc "
			  "of glibc and musl, jemalloc, tcmalloc, mimalloc in every module's "
			  "symbols)%s%s",
			  s->t->pid, s->t->status.name, plan->refused[0] ? "; refused: " : "",
			  plan->refused);

	if (stranger_append(s->t->pid, err) || !plan->nameless[0] || plan->refused[0])
		return ret;
	return mp_fail(
	    err, MP_EXIT_NO_ALLOCATOR, ret,
	    "process %d (%s): %s is static and has no symbols, so memprof cannot be certain where "
	    "its malloc() is, if it has one (--via=kernel has the same problem); attach needs "
	    "symbols or the debug file (by build-id); memprof leaks and heap need neither",
	    s->t->pid, s->t->status.name, plan->nameless);
}

/* Can the allocator's library be mapped yet?  A program that begins is linked by code that needs no
 * allocator. */
static bool is_being_linked(const struct session *s)
{
	struct proc_stat st;

	if (s->stopped || proc_stat_read(s->t->pid, &st))
		return false;
	return proc_stat_age_ms(&st) < LINKED_MS ||
	       (s->t->begun_ns && mono_ns() - s->t->begun_ns < LINKED_MS * 1000000ull);
}

static int plan(struct session *s, const struct maps *maps, struct mp_err *err)
{
	if (stranger_is_valgrind(s->t->pid, maps))
		return mp_fail(err, MP_EXIT_NO_ALLOCATOR, -ENOTSUP,
			       "process %d (%s) is valgrind, which executes a translation of the "
			       "program's functions, never the functions themselves, so nothing "
			       "would be recorded; run the program without valgrind",
			       s->t->pid, s->t->status.name);
	return hook_plan_make(s->t, maps, NULL, &s->plan, err);
}

int session_plan(struct session *s, struct maps *maps, struct mp_err *err)
{
	int ret = plan(s, maps, err);

	while (!ret && !has_allocator(&s->plan)) {
		if (!is_being_linked(s))
			return refuse_unknown(s, err);
		usleep(LINKED_LOOK_US);
		hook_plan_free(&s->plan);
		maps_free(maps);
		ret = maps_read(s->t->pid, maps);
		ret = ret ? target_refused(s->t, ret, err) : plan(s, maps, err);
	}
	return ret;
}

int session_refuse_shared(const struct target *t, struct mp_err *err)
{
	pid_t sharer = target_sharer(t);

	if (!sharer)
		return 0;
	return mp_fail(err, MP_EXIT_UNPATCHABLE, -ENOTSUP,
		       "process %d (%s) shares its memory with process %d, which would not stop "
		       "with it, so its allocator cannot be hooked safely; nothing was touched",
		       t->pid, t->status.name, sharer);
}

int session_stop(struct target *t, struct mp_err *err)
{
	struct deadline deadline = session_stop_deadline(t);
	int ret = t->threads.n ? 0 : target_seize(t, &deadline, err);

	deadline = session_stop_deadline(t);
	return ret ? ret : target_stop(t, &deadline, err);
}

bool session_is_mapped(const struct session *s, const struct maps *maps)
{
	uint64_t length = 0;

	return session_find(maps, &length) == s->journal->session_addr &&
	       length == s->journal->session_length;
}

bool session_is_child(struct session *s)
{
	uint64_t addr, length;
	struct maps maps;

	if (!s->journal || maps_read(s->t->pid, &maps))
		return false;
	addr = session_find(&maps, &length);
	maps_free(&maps);
	return session_forked(&s->t->mem, s->t->pid, addr, s->journal);
}

int session_open(struct session *s, struct target *t, const struct session_options *options,
		 struct mp_err *err)
{
	struct priority priority;
	struct layout layout;
	uint64_t length;
	struct maps maps;
	int ret;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->zero = options->zero;
	s->free_stacks = options->free_stacks;
	s->stopped = t->threads.n != 0;
	ret = blob_open(&s->blob);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "the embedded agent is damaged");
	ret = maps_read(t->pid, &maps);
	if (ret)
		return target_refused(t, ret, err);
	if (session_find(&maps, &length)) {
		maps_free(&maps);
		ret = session_refuse_recorder(t->pid, MP_EXIT_ATTACHED, err);
		if (ret)
			return ret;
		return mp_fail(err, MP_EXIT_ATTACHED, -EBUSY,
			       "process %d already has a memprof session; see: memprof status; end "
			       "it with: memprof detach -p %d",
			       t->pid, t->pid);
	}
	ret = session_plan(s, &maps, err);
	if (!ret)
		ret = sandbox_look(t, err);
	if (!ret)
		ret = session_refuse_shared(t, err);
	if (!ret)
		ret = layout_choose(t, options->ring_size, &layout, err);
	if (!ret && t->arch->vdso_clock)
		layout.control.clock_addr = vdso_function(t, &maps, t->arch->vdso_clock);
	priority_raise(&priority);
	if (!ret && !s->stopped)
		ret = session_stop(t, err);
	if (!ret) {
		ret = session_map(s, options, &layout, err);
		/* Building tables takes time, and seized threads would stop at each signal.  If
		 * mapping failed, the target is released below, without a second stop. */
		if (!s->stopped && !ret)
			target_release(t);
		s->open_stop_ns = t->last_stop_ns;
	}
	priority_restore(&priority);
	if (!ret && s->block) {
		fault_point("tables");
		ret = tables_init(&s->tables, s->block, &s->layout);
		if (!ret && options->cache)
			s->tables.cache = unwind_cache_dir(options->cache);
		if (!ret)
			ret = tables_add_agent(&s->tables, s->blob.elf, s->journal->agent_addr,
					       s->blob.mapped_length);
		if (!ret && tables_update(&s->tables, t, &maps) < 0)
			ret = -ENOMEM;
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "cannot build unwind tables: %s",
				strerror(-ret));
	}
	maps_free(&maps);
	if (ret && !s->block)
		target_release(t);
	return ret;
}

/* Marks the hooks of unloaded modules; a module that was loaded again has none.  Return: whether
 * there was such a hook. */
static bool forget_unloaded(struct session *s, const struct maps *maps)
{
	uint8_t now[SS_WINDOW];
	bool any = false;

	for (uint32_t i = 0; i < s->journal->nhooks && i < s->plan.hooks.n; i++) {
		const struct ss_journal_hook *h = &s->journal->hook[i];

		if (!h->patched || (journal_hook_mapped(maps, h) &&
				    (mem_read(&s->t->mem, h->addr, now, h->length) ||
				     memcmp(now, h->old_bytes, h->length))))
			continue;
		journal_forget_hook(s, i);
		s->plan.hooks.at[i].gone = any = true;
	}
	return any;
}

int session_refresh(struct session *s)
{
	struct hook_plan plan;
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps), fresh;
	bool unloaded;

	if (ret)
		return ret;
	unloaded = forget_unloaded(s, &maps);
	fresh = tables_update(&s->tables, s->t, &maps);
	ret = fresh < 0 ? fresh : 0;
	if (!s->other_agent && !s->no_hooks &&
	    (fresh > 0 || ((unloaded || s->look_again) && !ret))) {
		s->look_again = false;
		ret = hook_plan_make(s->t, &maps, &s->plan, &plan, NULL);
		if (!ret) {
			ret = plan.hooks.n > 0;
			for (size_t i = 0, base = s->plan.hooks.n; i < plan.hooks.n; i++) {
				if (plan.hooks.at[i].sibling >= 0)
					plan.hooks.at[i].sibling += (int)base;
				if (vec_push(&s->plan.hooks, plan.hooks.at[i]))
					ret = -ENOMEM;
			}
			hook_plan_free(&plan);
		}
	}
	maps_free(&maps);
	return ret;
}

void session_watch_filters(struct session *s)
{
	if (!s->observes && __atomic_load_n(&s->block->may_syscall, __ATOMIC_RELAXED) &&
	    sandbox_has_grown(s->t, &s->looked_at))
		__atomic_store_n(&s->block->may_syscall, 0, __ATOMIC_RELAXED);
}

int session_mute(struct session *s)
{
	uint32_t off = 0;

	return mem_write(&s->t->mem, s->journal->gate_addr + offsetof(struct ss_gate, on), &off,
			 sizeof(off));
}

/* Is it a block as open_block() makes it, complete and sealed against shrinking? */
static bool is_block(int fd, uint64_t length)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       (uint64_t)st.st_size >= length &&
	       length >= JOURNAL_OFFSET + sizeof(struct ss_journal);
}

static int refuse_absent(const struct target *t, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NO_SESSION, -ENOENT, "process %d has no memprof session",
		       t->pid);
}

static int refuse_damaged(const struct target *t, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the session in process %d is damaged",
		       t->pid);
}

/* @error: of map_open_block().  The block was mapped a moment ago: the recorder can have ended the session since. */
static int refuse_block(const struct target *t, int error, struct mp_err *err)
{
	if (error == -ENOENT)
		return refuse_absent(t, err);
	if (error == -EPERM || error == -EACCES)
		return mp_fail(err, MP_EXIT_PERMISSION, -EPERM,
			       "cannot open the session in process %d (/proc/%d/map_files needs "
			       "CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE); try sudo",
			       t->pid, t->pid);
	return mp_fail(err, MP_EXIT_FAILURE, error, "cannot open the session in process %d: %s",
		       t->pid, strerror(-error));
}

int session_adopt(struct session *s, struct target *t, struct mp_err *err)
{
	struct ss_control head;
	uint64_t addr, length;
	struct maps maps;
	int fd, ret;
	void *p;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->adopted = true;
	ret = maps_read(t->pid, &maps);
	if (ret)
		return target_refused(t, ret, err);
	addr = session_find(&maps, &length);
	if (!addr && session_leaked_fd(t->pid) >= 0) {
		maps_free(&maps);
		return 0;
	}
	if (!addr || mem_read(&t->mem, addr, &head, sizeof(head)) || head.magic != SS_MAGIC) {
		maps_free(&maps);
		return refuse_absent(t, err);
	}
	if (head.version != SS_VERSION) {
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO,
			       "the session in process %d belongs to another memprof version (%u, "
			       "this is %u); detach with that version",
			       t->pid, head.version, SS_VERSION);
	}
	ret = session_refuse_recorder(t->pid, MP_EXIT_NO_SESSION, err);
	if (ret) {
		maps_free(&maps);
		return ret;
	}
	fault_point("adopt-found");
	fd = map_open_block(t->pid, maps_find(&maps, addr));
	maps_free(&maps);
	if (fd < 0)
		return target_ask_again(t, refuse_block(t, fd, err), err);
	if (!is_block(fd, length)) {
		close(fd);
		return refuse_damaged(t, err);
	}
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	ret = -errno;
	close(fd);
	if (p == MAP_FAILED)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot map the session of process %d: %s", t->pid, strerror(-ret));
	s->block = p;
	s->length = length;
	s->layout = head;
	s->shared = (struct ss_journal *)((char *)p + JOURNAL_OFFSET);
	if (!s->shared->session_addr) /* its recorder died before it had entered it */
		s->shared->session_addr = addr;
	s->journal = calloc(1, sizeof(*s->journal));
	if (!s->journal || journal_load(s)) {
		session_free(s);
		return refuse_damaged(t, err);
	}
	return 0;
}

void session_free(struct session *s)
{
	if (s->block)
		munmap(s->block, s->length);
	s->block = NULL;
	s->shared = NULL;
	free(s->journal);
	s->journal = NULL;
	if (!s->adopted)
		tables_free(&s->tables);
	hook_plan_free(&s->plan);
	blob_close(&s->blob);
}

const char *session_state_text(uint32_t state)
{
	static const char *const text[] = {"being opened", "prepared",	     "being patched",
					   "recording",	   "being restored", "dormant"};

	return state < sizeof(text) / sizeof(text[0]) ? text[state] : "damaged";
}
