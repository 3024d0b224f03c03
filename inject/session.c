/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opening: memory in the target and the block's layout.  Patching is patch.c, leaving close.c. */
#include "inject/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "inject/internal.h"
#include "inject/place.h"

#define PAGE	       4096ull
#define JOURNAL_OFFSET PAGE
#define RULES	       65536u
#define RULE_CACHE     65536u
#define INTERNS	       (1u << 20)
#define ARENA_BYTES    (256ull << 20)
#define ROW_BYTES      (512ull << 20)
#define DEFAULT_RING   (2ull << 20)
#define MIN_SLOTS      512u
#define SAMPLED	       (1u << 21)
#define MAX_SLOTS      16384u
#define STOP_MS	       2000
#define SLOT_OWN_BYTES (768ull << 10) /* agent/agent.h, struct ag_thread: asserted by its build */

static uint64_t align(uint64_t n, uint64_t a)
{
	return (n + a - 1) & ~(a - 1);
}

uint64_t session_find(const struct maps *maps, uint64_t *length)
{
	vec_for_each (&maps->list, m) {
		if (strstr(m->path, "/memfd:" SS_NAME) && !m->offset) {
			*length = m->end - m->start;
			return m->start;
		}
	}
	return 0;
}

static uint32_t slots_for(size_t threads)
{
	uint32_t n = MIN_SLOTS;

	while (n < 2 * threads && n < MAX_SLOTS)
		n *= 2;
	return n;
}

/* Fills in offsets.  Return: length of the block. */
static uint64_t lay_out(struct ss_control *c, uint32_t slots, uint64_t ring)
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
	c->ninterns = INTERNS;
	at += (uint64_t)INTERNS * sizeof(struct ss_intern);
	c->arena = at;
	c->arena_words = ARENA_BYTES / 8;
	c->arena_used = 1;
	at += ARENA_BYTES;
	c->rows = at;
	c->rows_end = at += ROW_BYTES;
	c->sampled = at;
	c->nsampled = SAMPLED;
	at += 8ull * SAMPLED;
	c->slots = at;
	c->nslots = slots;
	c->slot_ring = SLOT_OWN_BYTES;
	c->ring_size = ring;
	c->slot_stride = SLOT_OWN_BYTES + PAGE + ring;
	return at + slots * c->slot_stride;
}

int session_remote_map(struct remote *r, uint64_t addr, uint64_t length, int prot, int flags,
		       int fd, uint64_t *result)
{
	uint64_t args[6] = {addr, length, (uint64_t)prot, (uint64_t)flags, (uint64_t)(int64_t)fd,
			    0};
	long ret;
	int err = remote_syscall(r, r->t->arch->nr.mmap, args, &ret);

	if (err)
		return err;
	if (ret < 0 && ret > -4096)
		return (int)ret;
	/* Kernels that do not know MAP_FIXED_NOREPLACE take the address as a hint. */
	if (addr && (uint64_t)ret != addr) {
		uint64_t back[6] = {(uint64_t)ret, length};

		remote_syscall(r, r->t->arch->nr.munmap, back, &ret);
		return -EEXIST;
	}
	*result = (uint64_t)ret;
	return 0;
}

/* Asks the target's seccomp filters about everything that will be called, before it is called. */
static int check_seccomp(struct target *t, uint64_t insn, bool *agent_may, struct mp_err *err)
{
	static const struct {
		const char *name;
		int nr;
		bool needed; /* by us; else by the agent, which can do without */
	} call[] = {{"mmap", 9, true},
		    {"munmap", 11, true},
		    {"memfd_create", 319, true},
		    {"madvise", 28, true},
		    {"close", 3, true},
		    {"rt_sigprocmask", 14, false},
		    {"sched_yield", 24, false},
		    {"shmctl", 31, false},
		    {"gettid", 186, false},
		    {"futex", 202, false},
		    {"restart_syscall", 219, true}};

	*agent_may = true;
	if (!t->status.seccomp)
		return 0;
	vec_for_each (&t->threads, th) {
		for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
			int allowed = seccomp_allows(t, *th, call[i].nr, NULL, insn);

			if (allowed > 0)
				continue;
			if (!call[i].needed) {
				*agent_may = false;
				continue;
			}
			return mp_fail(
			    err, MP_EXIT_SECCOMP, -EPERM,
			    allowed ? "process %d has a seccomp filter that cannot be read (needs "
				      "CAP_SYS_ADMIN), so %s could kill it; nothing was touched"
				    : "the seccomp filter of process %d does not allow %s; nothing "
				      "was touched",
			    t->pid, call[i].name);
		}
	}
	return 0;
}

/* Where glibc and musl keep the thread id, relative to the thread pointer: believed only when it
 * is right for every thread.  */
static void find_tid(struct target *t, struct ss_control *c)
{
	static const uint32_t candidate[] = {0x2d0, 0x30, 0x38};

	for (size_t k = 0; k < sizeof(candidate) / sizeof(candidate[0]) && !c->tid_known; k++) {
		size_t right = 0, asked = 0;

		vec_for_each (&t->threads, it) {
			struct proc_status st;
			uint32_t value;
			uint64_t tp;

			if (thread_get_regs(t, *it))
				continue;
			tp = t->arch->get_tp(&(*it)->regs);
			if (!tp || proc_status_read(t->pid, (*it)->tid, &st))
				continue;
			asked++;
			if (!mem_read(&t->mem, tp + candidate[k], &value, sizeof(value)) &&
			    value == (uint32_t)st.ns_pid)
				right++;
		}
		if (asked && asked == right) {
			c->tid_offset = candidate[k];
			c->tid_known = 1;
		}
	}
}

static int open_block(struct session *s, struct remote *r, uint64_t length, uint64_t *addr)
{
	struct target *t = s->t;
	uint64_t name = remote_string(r, SS_NAME),
		 args[6] = {name, MFD_CLOEXEC | MFD_ALLOW_SEALING};
	char path[64];
	long fd, ret;
	int ours, err;

	if (!name)
		return -EFAULT;
	err = remote_syscall(r, t->arch->nr.memfd_create, args, &fd);
	if (err || fd < 0)
		return err ? err : (int)fd;
	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", t->pid, fd);
	ours = open(path, O_RDWR | O_CLOEXEC);
	err = ours < 0 ? -errno : 0;
	/* Sealed: nobody can shrink it and make us, or the target, fault. */
	if (!err && (ftruncate(ours, (off_t)length) ||
		     fcntl(ours, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
		err = -errno;
	if (!err) {
		void *p =
		    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, ours, 0);

		if (p == MAP_FAILED)
			err = -errno;
		else
			s->block = p;
	}
	if (!err)
		err = session_remote_map(r, 0, length, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_NORESERVE, (int)fd, addr);
	memset(args, 0, sizeof(args));
	args[0] = (uint64_t)fd;
	remote_syscall(r, t->arch->nr.close, args, &ret);
	if (ours >= 0)
		close(ours);
	s->length = length;
	return err;
}

/* The agent's text and, behind it, the gate. */
static int open_agent(struct session *s, struct remote *r, uint64_t near_low, uint64_t near_high,
		      const struct maps *maps, uint64_t *addr)
{
	uint64_t text = s->blob.mapped_length, gate, args[6];
	uint64_t want =
	    place_near(maps, near_low, near_high, s->t->arch->reach, text + SS_GATE_BYTES);
	long ret;
	int err;

	if (!want)
		want = place_near(maps, near_low, near_low, UINT64_MAX, text + SS_GATE_BYTES);
	err = session_remote_map(r, want, text, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, addr);
	if (!err)
		err = session_remote_map(r, want + text, SS_GATE_BYTES, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
					 &gate);
	if (err)
		return err;
	memset(args, 0, sizeof(args));
	args[0] = gate;
	args[1] = SS_GATE_BYTES;
	args[2] = MADV_WIPEONFORK;
	err = remote_syscall(r, s->t->arch->nr.madvise, args, &ret);
	if (err || ret < 0)
		return err ? err : (int)ret;
	return mem_write(&s->t->mem, *addr, s->blob.text, s->blob.text_length);
}

static uint64_t unix_seconds(void)
{
	return (uint64_t)time(NULL);
}

static int fill(struct session *s, const struct ss_control *layout, const char *recording,
		uint64_t block_addr, uint64_t agent)
{
	struct ss_control *c = s->block;
	struct ss_journal *j;
	struct ss_gate gate = {0, 0, block_addr};

	*c = *layout;
	c->magic = SS_MAGIC;
	c->version = SS_VERSION;
	c->arch = s->t->arch->elf_machine;
	s->layout = *c;
	s->shared = (struct ss_journal *)((char *)c + layout->journal);
	j = s->journal = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	snprintf(j->recording, sizeof(j->recording), "%s", recording ? recording : "");
	j->state = SS_PREPARED;
	j->recorder_pid = getpid();
	j->recorder_start = proc_start_time(getpid());
	j->started_at = unix_seconds();
	j->agent_addr = agent;
	j->agent_length = s->blob.mapped_length + SS_GATE_BYTES;
	j->gate_addr = agent + s->blob.mapped_length;
	j->session_addr = block_addr;
	j->session_length = s->length;
	journal_publish(s);
	return mem_write(&s->t->mem, j->gate_addr, &gate, sizeof(gate));
}

static void code_range(const struct session *s, uint64_t *low, uint64_t *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < s->plan.hooks.n; i++) {
		const struct planned_hook *h = &s->plan.hooks.at[i];

		/* Hooks of the executable may be too far from the libraries': islands serve. */
		*low = h->addr < *low ? h->addr : *low;
		*high = h->addr > *high ? h->addr : *high;
	}
	if (*high - *low > s->t->arch->reach)
		*low = *high;
}

static bool has_allocator(const struct hook_plan *plan)
{
	vec_for_each (&plan->hooks, h) {
		if (h->kind == SS_HOOK_ALLOC)
			return true;
	}
	return false;
}

static int open_stopped(struct session *s, const struct session_options *o, struct mp_err *err)
{
	struct target *t = s->t;
	uint64_t ring = o->ring_size ? o->ring_size : DEFAULT_RING, length, low, high, block = 0,
		 agent = 0;
	struct ss_control layout = {0};
	bool agent_may;
	struct maps maps; /* as they are now that nobody can change them */
	struct remote r;
	int ret;

	if (t->status.vm_locked_kb) /* mlockall: every byte that is mapped would be locked */
		ring = 256 << 10;
	length = lay_out(&layout, slots_for(t->threads.n), ring);
	layout.lossless = o->lossless;
	layout.sample_interval = o->sample_interval;
	find_tid(t, &layout);
	ret = maps_read(t->pid, &maps);
	if (ret)
		return target_refused(t, ret, err);
	vec_for_each (&maps.list, m) {
		if (!strcmp(m->path, "[stack]")) {
			layout.main_stack_low = m->start;
			layout.main_stack_high = m->end;
		}
	}
	ret = remote_begin(&r, t, err);
	if (!ret && (ret = check_seccomp(t, r.syscall_insn, &agent_may, err)))
		remote_end(&r);
	if (ret) {
		maps_free(&maps);
		return ret;
	}
	layout.may_syscall = agent_may;
	code_range(s, &low, &high);
	ret = open_block(s, &r, length, &block);
	if (!ret)
		ret = open_agent(s, &r, low, high, &maps, &agent);
	maps_free(&maps);
	if (!ret)
		ret = fill(s, &layout, o->recording, block, agent);
	if (ret) {
		uint64_t args[6] = {block, length};
		long ignored;

		if (block)
			remote_syscall(&r, t->arch->nr.munmap, args, &ignored);
		args[0] = agent;
		args[1] = s->blob.mapped_length + SS_GATE_BYTES;
		if (agent)
			remote_syscall(&r, t->arch->nr.munmap, args, &ignored);
		remote_end(&r);
		if (s->block)
			munmap(s->block, s->length);
		s->block = NULL;
		return mp_fail(
		    err, ret == -EEXIST || ret == -ENOMEM ? MP_EXIT_NO_ROOM : MP_EXIT_FAILURE, ret,
		    "cannot map the agent into process %d: %s", t->pid, strerror(-ret));
	}
	ret = remote_end(&r);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot put thread %d back", r.carrier->tid)
		   : 0;
}

int session_open(struct session *s, struct target *t, const struct session_options *options,
		 struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(STOP_MS);
	uint64_t length;
	struct maps maps;
	int ret;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->stopped = t->threads.n != 0;
	ret = blob_open(&s->blob);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "the embedded agent is damaged");
	ret = maps_read(t->pid, &maps);
	if (ret)
		return target_refused(t, ret, err);
	if (session_find(&maps, &length)) {
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_ATTACHED, -EBUSY,
			       "process %d already carries a memprof session; see: memprof status; "
			       "end it by: memprof detach -p %d",
			       t->pid, t->pid);
	}
	ret = hook_plan_make(t, &maps, NULL, &s->plan, err);
	if (!ret && !has_allocator(&s->plan))
		ret = mp_fail(
		    err, MP_EXIT_NO_ALLOCATOR, -ENOENT,
		    "process %d (%s) has no allocator that memprof knows (looked for malloc of "
		    "glibc and musl, jemalloc, tcmalloc, mimalloc in every module's symbols)%s%s",
		    t->pid, t->status.name, s->plan.refused[0] ? "; refused: " : "",
		    s->plan.refused);
	if (!ret && !s->stopped) {
		ret = target_seize(t, &deadline, err);
		if (!ret)
			ret = target_stop(t, &deadline, err);
	}
	if (!ret) {
		ret = open_stopped(s, options, err);
		if (!s->stopped)
			target_resume(t);
		s->open_stop_ns = t->last_stop_ns;
	}
	if (!ret && s->block) {
		ret = tables_init(&s->tables, s->block, &s->layout);
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

int session_refresh(struct session *s)
{
	struct hook_plan plan;
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps), fresh;

	if (ret)
		return ret;
	fresh = tables_update(&s->tables, s->t, &maps);
	ret = fresh < 0 ? fresh : 0;
	if (fresh > 0) {
		ret = hook_plan_make(s->t, &maps, &s->plan, &plan, NULL);
		if (!ret) {
			ret = plan.hooks.n > 0;
			for (size_t i = 0; i < plan.hooks.n; i++) {
				plan.hooks.at[i].sibling = -1;
				if (plan.hooks.at[i].kind != SS_HOOK_ALLOC_THROW &&
				    vec_push(&s->plan.hooks, plan.hooks.at[i]))
					ret = -ENOMEM;
			}
			hook_plan_free(&plan);
		}
	}
	maps_free(&maps);
	return ret;
}

int session_mute(struct session *s)
{
	uint32_t off = 0;

	return mem_write(&s->t->mem, s->journal->gate_addr + offsetof(struct ss_gate, on), &off,
			 sizeof(off));
}

/* A block as open_block() makes it: whole, and it stays so. */
static bool is_block(int fd, uint64_t length)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       (uint64_t)st.st_size >= length &&
	       length >= JOURNAL_OFFSET + sizeof(struct ss_journal);
}

int session_adopt(struct session *s, struct target *t, struct mp_err *err)
{
	struct ss_control head;
	uint64_t addr, length;
	const struct map *m;
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
	if (!addr || mem_read(&t->mem, addr, &head, sizeof(head)) || head.magic != SS_MAGIC) {
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_NO_SESSION, -ENOENT,
			       "process %d carries no memprof session", t->pid);
	}
	if (head.version != SS_VERSION) {
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO,
			       "the session in process %d is of another memprof version (%u, this "
			       "one is %u); use that one to detach",
			       t->pid, head.version, SS_VERSION);
	}
	m = maps_find(&maps, addr);
	fd = proc_open_block(t->pid, m);
	if (fd >= 0 && !is_block(fd, length)) {
		close(fd);
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO,
			       "the session in process %d is damaged", t->pid);
	}
	p = fd < 0 ? MAP_FAILED
		   : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (fd >= 0)
		close(fd);
	maps_free(&maps);
	if (p == MAP_FAILED)
		return mp_fail(err, MP_EXIT_PERMISSION, -EPERM,
			       "cannot open the session in process %d (/proc/%d/map_files needs "
			       "CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE); try sudo",
			       t->pid, t->pid);
	s->block = p;
	s->length = length;
	s->layout = head;
	s->shared = (struct ss_journal *)((char *)p + JOURNAL_OFFSET);
	s->journal = calloc(1, sizeof(*s->journal));
	if (!s->journal || journal_load(s)) {
		session_free(s);
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO,
			       "the session in process %d is damaged", t->pid);
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
	static const char *const text[] = {"damaged",	"prepared",	  "being patched",
					   "recording", "being restored", "dormant"};

	return state < sizeof(text) / sizeof(text[0]) ? text[state] : text[0];
}
